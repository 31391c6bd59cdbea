//! SentencePiece's visible spaces (U+2581).
//!
//! Its vocabularies write U+2581 for a space, and encode a text after the same substitution. This
//! crate uses plain spaces for both, which are shorter; a token with a plain space then cannot
//! match.

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

/// Whether a token has a plain space.
pub(crate) fn has_space(token: &[u8]) -> bool {
    token.contains(&b' ')
}

/// Replaces visible spaces in a text by plain ones, and prepends a space if `prefix`.
pub(crate) fn with_spaces(text: &str, prefix: bool) -> Cow<'_, str> {
    let text = match text.contains(VISIBLE) {
        true => Cow::Owned(text.replace(VISIBLE, " ")),
        false => Cow::Borrowed(text),
    };
    if prefix { Cow::Owned(format!(" {text}")) } else { text }
}
