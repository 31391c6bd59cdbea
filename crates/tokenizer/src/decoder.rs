//! Incremental decoding.

use crate::options::DecodeOptions;
use crate::tokenizer::Tokenizer;

/// Decodes ids incrementally.
///
/// A character can span several tokens: [`push`](Self::push) returns complete characters and
/// buffers the rest.
pub struct Decoder<'t> {
    tokenizer: &'t Tokenizer,
    options: DecodeOptions,
    at_start: bool,
    /// Incomplete bytes of a character.
    pending: Vec<u8>,
}

impl<'t> Decoder<'t> {
    /// Creates a decoder at the start of a text.
    pub fn new(tokenizer: &'t Tokenizer, options: DecodeOptions) -> Self {
        Self { tokenizer, options, at_start: true, pending: Vec::new() }
    }

    /// Lets the decoder continue a text, so that a space at its start is kept.
    pub fn continuing(self) -> Self {
        Self { at_start: false, ..self }
    }

    /// Decodes one id and returns the text that is complete. Invalid UTF-8 becomes U+FFFD.
    pub fn push(&mut self, id: u32) -> String {
        let mut bytes = std::mem::take(&mut self.pending);
        self.bytes(id, &mut bytes);
        let mut text = String::new();
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            // Only at the end can an error be an incomplete character.
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// Returns U+FFFD if the text ends with an incomplete character, otherwise nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }

    /// Appends the bytes of the next token.
    pub(crate) fn bytes(&mut self, id: u32, out: &mut Vec<u8>) {
        if self.tokenizer.is_shown(id, self.options) {
            self.tokenizer.append(id, self.at_start, out);
            self.at_start = false;
        }
    }
}

/// Whether these invalid bytes are the beginning of a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|fault| fault.error_len().is_none())
}

impl Tokenizer {
    /// Decodes ids to bytes: a token can end within a character. Ids outside the vocabulary are
    /// skipped.
    pub fn decode(&self, ids: &[u32], options: DecodeOptions) -> Vec<u8> {
        let mut decoder = Decoder::new(self, options);
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        ids.iter().for_each(|&id| decoder.bytes(id, &mut bytes));
        bytes
    }
}
