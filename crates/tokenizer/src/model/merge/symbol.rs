//! Symbols of a word, and the result of merging two.

/// A symbol: a part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// Start in bytes.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
    /// Token id; [`NO_TOKEN`] if it is not a token.
    pub id: u32,
}

/// Id of a symbol that is not a token.
pub(crate) const NO_TOKEN: u32 = u32::MAX;

/// Result of merging two adjacent symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MergeRule {
    /// Rank: the lowest is merged first; of equal ranks, the leftmost.
    pub rank: u32,
    /// Token id of the merged symbol.
    pub id: u32,
}

/// Returns the characters of a word from `start` on, with the token ids that `find` returns.
pub(crate) fn characters(
    word: &[u8],
    mut start: usize,
    find: impl Fn(&[u8]) -> Option<u32>,
) -> impl Iterator<Item = Symbol> {
    std::iter::from_fn(move || {
        let rest = word.get(start..).filter(|rest| !rest.is_empty())?;
        let len = char_len(rest);
        let symbol = Symbol { start, len, id: find(&rest[..len]).unwrap_or(NO_TOKEN) };
        start += len;
        Some(symbol)
    })
}

/// Returns the length of the character at the start of `text`, from its first byte.
pub(crate) fn char_len(text: &[u8]) -> usize {
    let len = match text.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xff) => 4,
        _ => 1,
    };
    len.min(text.len())
}
