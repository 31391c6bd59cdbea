//! Ids to text, one at a time.

use crate::options::Decode;
use crate::tokenizer::Tokenizer;

/// Decodes ids as they come.
///
/// A character can be spread over several tokens: [`push`](Self::push) gives whole characters and
/// keeps the rest for later.
pub struct Decoder<'t> {
    tokenizer: &'t Tokenizer,
    how: Decode,
    at_start: bool,
    /// Less than a character.
    pending: Vec<u8>,
}

impl<'t> Decoder<'t> {
    /// A decoder at the start of a text.
    pub fn new(tokenizer: &'t Tokenizer, how: Decode) -> Self {
        Self { tokenizer, how, at_start: true, pending: Vec::new() }
    }

    /// The text that is complete with this token. Bytes that are not UTF-8 become U+FFFD.
    pub fn push(&mut self, id: u32) -> String {
        let mut bytes = std::mem::take(&mut self.pending);
        self.bytes(id, &mut bytes);
        let mut text = String::new();
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // Only at the end can an error be a character that goes on.
            if chunks.peek().is_none() && is_unfinished(invalid) {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// What is left at the end: U+FFFD if that is a part of a character, else nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }

    /// Appends the bytes of the next token.
    pub(crate) fn bytes(&mut self, id: u32, out: &mut Vec<u8>) {
        if self.tokenizer.is_shown(id, self.how) {
            self.tokenizer.append(id, self.at_start, out);
            self.at_start = false;
        }
    }
}

/// True if these bytes, which are no character, are the first ones of some.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|fault| fault.error_len().is_none())
}

impl Tokenizer {
    /// The text of ids, as bytes: a token can end within a character. Ids outside of the
    /// vocabulary stand for nothing.
    pub fn decode(&self, ids: &[u32], how: Decode) -> Vec<u8> {
        let mut decoder = Decoder::new(self, how);
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        ids.iter().for_each(|&id| decoder.bytes(id, &mut bytes));
        bytes
    }
}
