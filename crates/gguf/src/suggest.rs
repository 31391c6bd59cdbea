//! Suggestions for misspelled names.

/// Returns the Levenshtein distance of two texts; `None` if it exceeds `limit`. Texts whose lengths
/// differ by more than `limit` cost no time: files can have millions of names.
pub fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    if a.chars().count().abs_diff(b.chars().count()) > limit {
        return None;
    }
    Some(strsim::levenshtein(a, b)).filter(|&distance| distance <= limit)
}

/// Those of `names` that are candidate most like `word`, whatever the case and what stands between the
/// Returns the names most similar to `word`, ignoring case and punctuation: at most three, at an
/// edit distance of at most a third of the letters.
/// ```
/// use gguf::suggest::nearest;
/// assert_eq!(nearest("q4km", ["Q4_K_S", "Q4_K_M"]), ["Q4_K_M"]);
/// assert_eq!(nearest("atn-q", ["attn_q", "attn_k"]), ["attn_q"]);
/// assert!(nearest("camel", ["llama", "gpt2"]).is_empty());
/// ```
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    const SHOWN: usize = 3;
    let word = normalized(word);
    let limit = word.len().div_ceil(3).clamp(1, 3);
    let candidate = |name: &'n str| Some((distance(&word, &normalized(name), limit)?, name));
    let candidates: Vec<_> = names.into_iter().filter_map(candidate).collect();
    let best = candidates.iter().map(|(distance, _)| *distance).min();
    let mut found: Vec<&str> = Vec::new();
    for (distance, name) in candidates {
        if Some(distance) == best && !found.contains(&name) && found.len() < SHOWN {
            found.push(name);
        }
    }
    found
}

/// Returns "did you mean ...?" to append to a message; empty if there are no names.
pub fn did_you_mean(nearest: &[&str]) -> String {
    match nearest {
        [] => String::new(),
        [name] => format!("did you mean {name}?"),
        [names @ .., last] => format!("did you mean {} or {last}?", names.join(", ")),
    }
}

/// Returns the letters and digits in lower case.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, distance, nearest};

    #[test]
    fn distance_is_bounded_by_the_limit() {
        let any = usize::MAX;
        assert_eq!(distance("", "abc", any), Some(3));
        assert_eq!(distance("kitten", "sitting", any), Some(3));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
        assert_eq!(distance("same", "same", 0), Some(0));
    }

    #[test]
    fn suggests_the_nearest_names() {
        let types = ["Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q8_0"];
        assert_eq!(nearest("q4", types), ["Q4_0", "Q4_1"]);
        assert_eq!(nearest("Q4_K_XL", types), ["Q4_K_S", "Q4_K_M"]);
        assert_eq!(nearest("out.gguf", types), [""; 0]);
        assert_eq!(did_you_mean(&["a"]), "did you mean a?");
        assert_eq!(did_you_mean(&["a", "b", "c"]), "did you mean a, b or c?");
        assert_eq!(did_you_mean(&[]), "");
    }
}
