//! Warnings about patterns that match no tensor name: often a name of another program, or a typo.

use std::collections::BTreeSet;

use gguf::suggest;

use super::name_pattern::NamePattern;

/// Returns a warning that lists the patterns without a match and the names most similar to the
/// first of them.
pub(super) fn warning<'p, 'n>(
    patterns: impl Iterator<Item = &'p NamePattern>,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<String> {
    let patterns: Vec<&NamePattern> = patterns.collect();
    let is_slow = |pattern: &&&NamePattern| names.clone().any(|name| pattern.is_too_slow(name));
    if let Some(slow) = patterns.iter().find(is_slow) {
        return Some(format!(
            "the pattern `{slow}` takes too many steps and counts as no match; simplify it"
        ));
    }
    let unmatched: Vec<&str> = patterns
        .into_iter()
        .filter(|pattern| !names.clone().any(|name| pattern.is_match(name)))
        .map(NamePattern::as_str)
        .collect();
    let (first, others) = unmatched.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        1 => ", and neither does 1 more".to_owned(),
        more => format!(", and neither do {more} more"),
    };
    let parts: BTreeSet<&str> = names.map(part).collect();
    let near = suggest::nearest(longest_word(first), parts.iter().copied());
    let help = match near.is_empty() {
        false => suggest::did_you_mean(&near),
        true => format!("names contain {}", parts.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("the pattern `{first}` matches no tensor name{more}; {help}"))
}

/// Returns the name within the block: `attn_q` of `blk.0.attn_q.weight`.
fn part(name: &str) -> &str {
    let name = name.strip_suffix(".weight").or_else(|| name.strip_suffix(".bias")).unwrap_or(name);
    let within = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    within.map_or(name, |(_, within)| within)
}

/// Returns the longest literal run of a pattern that can be part of a name, without the parts that
/// most names have.
fn longest_word(pattern: &str) -> &str {
    let words = pattern.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let telling = words.filter(|word| !matches!(*word, "blk" | "weight" | "bias"));
    telling.max_by_key(|word| word.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] =
        ["token_embd.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight", "output.weight"];

    fn warn(patterns: &[&str]) -> Option<String> {
        let patterns: Vec<_> =
            patterns.iter().map(|text| NamePattern::new(text).unwrap()).collect();
        warning(patterns.iter(), NAMES.iter().copied())
    }

    #[test]
    fn unmatched_patterns_are_reported_with_similar_names() {
        assert_eq!(warn(&["attn_q", r"blk\.\d+\.ffn_down", "^output.weight$"]), None);
        let slip = warn(&["attn_q", r"blk\.\d+\.fnn_down\.weight"]).unwrap();
        assert!(slip.starts_with(r"the pattern `blk\.\d+\.fnn_down\.weight` matches no"), "{slip}");
        assert!(slip.ends_with("; did you mean ffn_down?"), "{slip}");
        let foreign = warn(&["self_attention", "x1", "x2"]).unwrap();
        assert!(foreign.contains("no tensor name, and neither do 2 more"), "{foreign}");
        assert!(foreign.ends_with("contain attn_q, ffn_down, output, token_embd"), "{foreign}");
    }
}
