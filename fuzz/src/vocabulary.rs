//! Fuzz properties of tokenizer files.

use gguf_models::convert::VocabularyKind;
use std::fs;

use gguf_convert::vocab::{VocabularyOptions, load};
use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, Tokenizer};

/// Text with characters that tokenizers treat specially.
const TEXT: &str = "Hello  world, <s> it's 12345\n\n\u{2581}\u{e9}e\u{301}\u{1f600}\u{fffd}";

/// Reads `tokenizer.json` without a panic; a valid one can encode a text.
pub fn json(bytes: &[u8]) -> usize {
    let kinds = [
        VocabularyKind::Bpe,
        VocabularyKind::Llama,
        VocabularyKind::Encoder,
        VocabularyKind::T5,
        VocabularyKind::Glm4,
    ];
    file("tokenizer.json", bytes, &kinds)
}

/// Reads `tokenizer.model` without a panic; a valid one can encode a text.
pub fn model(bytes: &[u8]) -> usize {
    file(
        "tokenizer.model",
        bytes,
        &[VocabularyKind::SentencePiece, VocabularyKind::T5, VocabularyKind::BpeElseSentencePiece],
    )
}

/// Returns the number of tokens of all valid vocabularies.
fn file(name: &str, bytes: &[u8], kinds: &[VocabularyKind]) -> usize {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), bytes).unwrap();
    let mut tokens = 0;
    for kind in kinds {
        // The pre-tokenizer and the vocabulary are detected separately.
        for pre in [None, Some("gpt-2")] {
            let options = VocabularyOptions { pre, ..VocabularyOptions::default() };
            let Ok(vocabulary) = load(dir.path(), *kind, &options) else { continue };
            tokens += vocabulary.len;
            for compat in [Compat::Original, Compat::LlamaCpp] {
                let options = gguf_tokenizer::TokenizerOptions { compat, ..Default::default() };
                let tokenizer = Tokenizer::from_metadata(&vocabulary.metadata, options);
                let Ok(tokenizer) = tokenizer else { continue };
                let ids = tokenizer.encode(TEXT, EncodeOptions::default());
                assert!(ids.iter().all(|id| (*id as usize) < vocabulary.len));
                let _ = tokenizer.decode(&ids, DecodeOptions { special: true });
            }
        }
    }
    tokens
}
