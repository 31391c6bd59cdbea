//! Parts of words, and what two neighbours can become.

/// A part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
    /// Its token; [`NO_TOKEN`] if there is none.
    pub id: u32,
}

/// The id of a symbol that is no token.
pub(crate) const NO_TOKEN: u32 = u32::MAX;

/// What two neighbours can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Join {
    /// The lowest is done first; of equal ones, the leftmost.
    pub rank: u32,
    /// The token of both together.
    pub id: u32,
}

/// The characters of a word from a place on, each with the token that `find` knows for it.
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

/// The length of the character at the start of `text`, as its first byte says.
pub(crate) fn char_len(text: &[u8]) -> usize {
    let len = match text.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xff) => 4,
        _ => 1,
    };
    len.min(text.len())
}
