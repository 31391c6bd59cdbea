//! How alike two names are spelt: for messages that say which one may have been meant.

/// How many letters must be put in, taken out or replaced to make one text of the other; `None` if
/// these are more than `limit`. Texts whose lengths are farther apart than that take no time: files
/// can have millions of names.
pub fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    if a.chars().count().abs_diff(b.chars().count()) > limit {
        return None;
    }
    Some(strsim::levenshtein(a, b)).filter(|&distance| distance <= limit)
}

/// Those of `names` that are spelt most like `word`, whatever the case and what stands between the
/// parts; at most three, and none that is farther off than a third of the letters.
///
/// ```
/// use gguf::spelling::nearest;
/// assert_eq!(nearest("q4km", ["Q4_K_S", "Q4_K_M"]), ["Q4_K_M"]);
/// assert_eq!(nearest("atn-q", ["attn_q", "attn_k"]), ["attn_q"]);
/// assert!(nearest("camel", ["llama", "gpt2"]).is_empty());
/// ```
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    const SHOWN: usize = 3;
    let word = plain(word);
    let limit = word.len().div_ceil(3).clamp(1, 3);
    let spelt = |name: &'n str| Some((distance(&word, &plain(name), limit)?, name));
    let near: Vec<_> = names.into_iter().filter_map(spelt).collect();
    let best = near.iter().map(|(distance, _)| *distance).min();
    let mut found: Vec<&str> = Vec::new();
    for (distance, name) in near {
        if Some(distance) == best && !found.contains(&name) && found.len() < SHOWN {
            found.push(name);
        }
    }
    found
}

/// The question whether one of these was meant, to follow a message; empty if there is none.
pub fn question(nearest: &[&str]) -> String {
    match nearest {
        [] => String::new(),
        [name] => format!("did you mean {name}?"),
        [names @ .., last] => format!("did you mean {} or {last}?", names.join(", ")),
    }
}

/// The letters and digits alone.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest, question};

    #[test]
    fn single_edits_are_counted_up_to_the_limit() {
        let any = usize::MAX;
        assert_eq!(distance("", "abc", any), Some(3));
        assert_eq!(distance("kitten", "sitting", any), Some(3));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
        assert_eq!(distance("same", "same", 0), Some(0));
    }

    #[test]
    fn the_nearest_names_are_asked_for() {
        let types = ["Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q8_0"];
        assert_eq!(nearest("q4", types), ["Q4_0", "Q4_1"]);
        assert_eq!(nearest("Q4_K_XL", types), ["Q4_K_S", "Q4_K_M"]);
        assert_eq!(nearest("out.gguf", types), [""; 0]);
        assert_eq!(question(&["a"]), "did you mean a?");
        assert_eq!(question(&["a", "b", "c"]), "did you mean a, b or c?");
        assert_eq!(question(&[]), "");
    }
}
