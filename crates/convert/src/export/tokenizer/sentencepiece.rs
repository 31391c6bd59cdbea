//! `tokenizer.model`: the message `ModelProto` of SentencePiece.

use serde_json::{Map, Value, json};

use super::{CONTROL, NORMAL, Token, USER_DEFINED, is_padding};

/// The score that tokens get which were added to a model after training.
const ADDED_SCORE: f32 = -1000.0;

/// The file, and which of its tokens were added (`added_tokens_decoder`).
pub(super) fn file(tokens: &[Token], add_dummy_prefix: bool) -> (Vec<u8>, Map<String, Value>) {
    let mut out = Vec::new();
    let mut added = Map::new();
    // What fills up the embedding is no part of the model; between other tokens it must be.
    let last = tokens.iter().enumerate().rposition(|(id, token)| !is_padding(id, token));
    for (id, token) in tokens.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
        let is_added =
            token.score == ADDED_SCORE && (token.kind == USER_DEFINED || token.kind == CONTROL);
        if is_added {
            let description = json!({
                "content": token.text,
                "special": token.kind == CONTROL,
                "lstrip": false,
                "rstrip": false,
                "single_word": false,
                "normalized": false,
            });
            added.insert(id.to_string(), description);
        }
        field(&mut out, 1, &piece(token));
    }
    // Trainer: byte-pair encoding, with byte fallback.
    field(&mut out, 2, &[number(3, 2), number(35, 1)].concat());
    // Normalizer: none, spaces as they are but one in front of the text.
    let name = {
        let mut name = Vec::new();
        field(&mut name, 1, b"identity");
        name
    };
    let flags = [number(3, u64::from(add_dummy_prefix)), number(4, 0), number(5, 1)].concat();
    field(&mut out, 3, &[name, flags].concat());
    (out, added)
}

fn piece(token: &Token) -> Vec<u8> {
    let mut out = Vec::new();
    field(&mut out, 1, token.text.as_bytes());
    // Field 2, four bytes.
    out.push(2 << 3 | 5);
    out.extend(token.score.to_le_bytes());
    if token.kind != NORMAL {
        out.extend(number(3, token.kind.unsigned_abs()));
    }
    out
}

/// A field of bytes: its number, their length, they.
fn field(out: &mut Vec<u8>, id: u64, bytes: &[u8]) {
    varint(out, id << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A field with a number.
fn number(id: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, id << 3);
    varint(&mut out, value);
    out
}

/// Seven bits per byte, the lowest first; all but the last have the highest bit set.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
