//! The merges of a byte-level vocabulary, from the order of its tokens.
//!
//! Training adds a token for every merge, so that the number of a token is the rank of its merge.
//! The two parts are what merging by lower numbers leaves of its bytes.

use std::collections::HashMap;

/// Pairs of tokens, in the order in which they merge; `None` if the vocabulary cannot have come
/// about so: a token does not end up in two parts, or tokens repeat.
///
/// `is_trained` tells which tokens merges made.
pub(super) fn recover(
    tokens: &[Vec<u8>],
    is_trained: impl Fn(usize) -> bool,
) -> Option<Vec<(usize, usize)>> {
    let mut ranks: HashMap<&[u8], usize> = HashMap::new();
    let mut merges = Vec::new();
    for (id, token) in tokens.iter().enumerate().filter(|(id, _)| is_trained(*id)) {
        if token.len() > 1 {
            let [left, right] = parts(token, &ranks)?;
            merges.push((left, right));
        }
        if ranks.insert(token, id).is_some() {
            return None;
        }
    }
    Some(merges)
}

/// Longer tokens are runs of spaces and the like, of which the longest have a hundred bytes.
const LONGEST: usize = 1 << 8;

/// Merges the bytes of a token by the known ranks, lowest first, and returns the two that remain.
fn parts(token: &[u8], ranks: &HashMap<&[u8], usize>) -> Option<[usize; 2]> {
    if token.len() > LONGEST {
        return None;
    }
    // Where each part begins, and the end.
    let mut cuts: Vec<usize> = (0..=token.len()).collect();
    while cuts.len() > 3 {
        let pairs = cuts.windows(3).enumerate();
        let ranked = pairs.filter_map(|(i, cut)| Some((ranks.get(&token[cut[0]..cut[2]])?, i)));
        let (_, first) = ranked.min()?;
        cuts.remove(first + 1);
    }
    let [start, middle, end] = cuts[..] else { return None };
    Some([*ranks.get(&token[start..middle])?, *ranks.get(&token[middle..end])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_lower_merges_leave() {
        let tokens: Vec<Vec<u8>> =
            ["a", "b", "c", "bc", "ab", "abc", "abab"].map(|text| text.into()).into();
        let merges = recover(&tokens, |_| true);
        // `bc` comes before `ab`, so that `abc` is `a` and `bc`.
        assert_eq!(merges, Some(vec![(1, 2), (0, 1), (0, 3), (4, 4)]));
    }

    #[test]
    fn other_orders_are_refused() {
        let tokens: Vec<Vec<u8>> = ["a", "b", "abab", "ab"].map(|text| text.into()).into();
        assert_eq!(recover(&tokens, |_| true), None);
        let tokens: Vec<Vec<u8>> = ["a", "a"].map(|text| text.into()).into();
        assert_eq!(recover(&tokens, |_| true), None);
    }
}
