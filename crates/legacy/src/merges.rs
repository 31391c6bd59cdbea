//! Recovers the merges of a byte-level vocabulary from the order of its tokens.
//!
//! BPE training adds one token per merge, so the token id is the rank of its merge. Applying the
//! merges of lower rank to the bytes of a token leaves the two tokens that it merges.

use std::collections::HashMap;

/// Pairs of token ids, in merge order. `None` if training cannot have produced the vocabulary: a
/// token does not reduce to two tokens, or tokens repeat.
///
/// `is_trained` returns whether a token was created by a merge.
pub(super) fn recover(
    tokens: &[Vec<u8>],
    is_trained: impl Fn(usize) -> bool,
) -> Option<Vec<(usize, usize)>> {
    let mut ranks: HashMap<&[u8], usize> = HashMap::new();
    let mut merges = Vec::new();
    for (id, token) in tokens.iter().enumerate().filter(|(id, _)| is_trained(*id)) {
        if token.len() > 1 {
            let [left, right] = last_merge(token, &ranks)?;
            merges.push((left, right));
        }
        if ranks.insert(token, id).is_some() {
            return None;
        }
    }
    Some(merges)
}

/// Longer tokens are not supported. The longest known ones are runs of about 100 spaces.
const MAX_TOKEN_BYTES: usize = 1 << 8;

/// Merges the bytes of a token, lowest rank first, and returns the last two tokens.
fn last_merge(token: &[u8], ranks: &HashMap<&[u8], usize>) -> Option<[usize; 2]> {
    if token.len() > MAX_TOKEN_BYTES {
        return None;
    }
    // The start of each part, and the end.
    let mut bounds: Vec<usize> = (0..=token.len()).collect();
    while bounds.len() > 3 {
        let pairs = bounds.windows(3).enumerate();
        let ranked = pairs.filter_map(|(i, pair)| Some((ranks.get(&token[pair[0]..pair[2]])?, i)));
        let (_, first) = ranked.min()?;
        bounds.remove(first + 1);
    }
    let [start, middle, end] = bounds[..] else { return None };
    Some([*ranks.get(&token[start..middle])?, *ranks.get(&token[middle..end])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_are_recovered_from_token_order() {
        let tokens: Vec<Vec<u8>> =
            ["a", "b", "c", "bc", "ab", "abc", "abab"].map(|text| text.into()).into();
        let merges = recover(&tokens, |_| true);
        // `bc` comes before `ab`, so that `abc` is `a` and `bc`.
        assert_eq!(merges, Some(vec![(1, 2), (0, 1), (0, 3), (4, 4)]));
    }

    #[test]
    fn impossible_orders_are_rejected() {
        let tokens: Vec<Vec<u8>> = ["a", "b", "abab", "ab"].map(|text| text.into()).into();
        assert_eq!(recover(&tokens, |_| true), None);
        let tokens: Vec<Vec<u8>> = ["a", "a"].map(|text| text.into()).into();
        assert_eq!(recover(&tokens, |_| true), None);
    }
}
