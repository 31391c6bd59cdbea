//! Conversion of tokenizer files to metadata, and export of metadata to tokenizer files.

mod byte_level;
mod export;
mod invalid_files;
mod other_tokenizers;
mod pre_tokenizer;
mod reference;
mod sentencepiece;
mod sentencepiece_json;
mod special_tokens;

use std::path::PathBuf;

use gguf::{Error, Metadata};
use gguf_convert::vocab::{Vocabulary, VocabularyOptions, load};
use gguf_models::convert::VocabularyKind;
use serde_json::{Value, json};

use crate::fixtures::reference_data;
use crate::fixtures::tokenizer_files::{added, folder};

/// Returns the folder of the reference checkpoints.
fn reference_checkpoints() -> Option<PathBuf> {
    reference_data().map(|data| data.join("zoo"))
}

fn convert(
    files: &[(&str, &[u8])],
    kind: VocabularyKind,
    options: &VocabularyOptions,
) -> Result<Vocabulary, Error> {
    load(folder(files).path(), kind, options)
}

/// Returns texts and types of all tokens.
fn tokens(metadata: &Metadata) -> Vec<(String, i64)> {
    let types = metadata.array("tokenizer.ggml.token_type").unwrap().to_i64s().unwrap();
    strings(metadata, "tokenizer.ggml.tokens").into_iter().zip(types).collect()
}

fn strings(metadata: &Metadata, key: &str) -> Vec<String> {
    let array = metadata.array(key).unwrap();
    array.strings().unwrap().map(|s| String::from_utf8(s.to_owned()).unwrap()).collect()
}

fn owned(tokens: &[(&str, i64)]) -> Vec<(String, i64)> {
    tokens.iter().map(|&(text, kind)| (text.to_owned(), kind)).collect()
}

#[track_caller]
fn assert_noted(found: &Vocabulary, part: &str) {
    assert!(found.notes.iter().any(|note| note.contains(part)), "{part}: {:?}", found.notes);
}

/// Returns a byte-level tokenizer with ids up to 6. Id 3 is unused.
fn tiny_bpe() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [
            added(4, "<|end|>", false, false),
            added(5, "a\u{120}b", false, false),
            added(6, "\u{2581}x", false, true),
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "post_processor": {"type": "ByteLevel"},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "b": 1, "ab": 2},
            "merges": [["a", "b"], ["a", " "]]
        }
    })
}

fn convert_bpe(tokenizer: &Value, options: &VocabularyOptions) -> Result<Vocabulary, Error> {
    convert(&[("tokenizer.json", tokenizer.to_string().as_bytes())], VocabularyKind::Bpe, options)
}
