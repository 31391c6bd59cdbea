//! Vocabulary file of PLaMo 2 and 3: one JSON list per token.

use std::fmt::Write;

use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::{File, Tokenizer, Vocabulary};
use crate::vocab::PLAMO;

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, _: &mut Map<String, Value>) {
    let mut text = String::new();
    // Padding tokens are numbered from 1 on, and have no line in the file.
    let is_used = |token: &super::Token| token.kind != TokenType::Unused;
    let last = vocabulary.tokens.iter().rposition(is_used);
    for token in &vocabulary.tokens[..last.map_or(0, |last| last + 1)] {
        let kind = match token.kind {
            TokenType::Unknown => "UNKNOWN",
            TokenType::Control => "CONTROL",
            TokenType::Byte => "BYTE",
            _ => "NORMAL",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", json!([token.text, token.score, kind]));
    }
    out.files.push(File { name: PLAMO, bytes: text.into_bytes() });
}
