//! Tokenizer files in the making.

use std::fs;
use std::path::PathBuf;

use gguf_convert::vocab::Options;
use serde_json::{Value, json};

/// The reference data, if there is any.
pub fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA");
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA names no folder with reference data");
    }
    dir.map(PathBuf::from)
}

/// A checkpoint directory with these files.
pub fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

/// What a model with an embedding of so many rows asks for.
pub fn rows(vocab_size: u64) -> Options<'static> {
    Options { vocab_size: Some(vocab_size), ..Options::default() }
}

/// An entry of `added_tokens`.
pub fn added(id: u64, content: &str, special: bool, normalized: bool) -> Value {
    json!({
        "id": id, "content": content, "special": special, "normalized": normalized,
        "lstrip": false, "rstrip": false, "single_word": false
    })
}

/// A number of a protocol buffer, below 128.
pub fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Bytes of a protocol buffer, fewer than 128.
pub fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, u8::try_from(value.len()).unwrap()][..], value].concat()
}

/// A piece of a SentencePiece model: its text, score and type.
pub fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
    let score = [&[2 << 3 | 5][..], &score.to_le_bytes()].concat();
    bytes(1, &[bytes(1, text.as_bytes()), score, number(3, kind)].concat())
}
