//! SentencePiece's visible spaces.
//!
//! Its vocabularies write U+2581 for a space, and so does a text before it is encoded. Here both
//! have plain spaces, which are shorter; a token with a plain space can then never be found.

use std::borrow::Cow;

const VISIBLE: &str = "\u{2581}";

/// Appends the text of a token with plain spaces.
pub(crate) fn to_spaces(token: &[u8], out: &mut Vec<u8>) {
    let mut rest = token;
    while let Some((&byte, after)) = rest.split_first() {
        match rest.strip_prefix(VISIBLE.as_bytes()) {
            Some(after) => {
                out.push(b' ');
                rest = after;
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
}

/// True if a token has a plain space.
pub(crate) fn has_space(token: &[u8]) -> bool {
    token.contains(&b' ')
}

/// A text with plain spaces, and one more in front if `prefix`.
pub(crate) fn with_spaces(text: &str, prefix: bool) -> Cow<'_, str> {
    let text = match text.contains(VISIBLE) {
        true => Cow::Owned(text.replace(VISIBLE, " ")),
        false => Cow::Borrowed(text),
    };
    if prefix { Cow::Owned(format!(" {text}")) } else { text }
}
