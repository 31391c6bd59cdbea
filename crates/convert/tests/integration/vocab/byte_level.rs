//! Byte-level BPE vocabularies.

use gguf_convert::vocab::VocabularyOptions;
use gguf_models::convert::VocabularyKind;
use serde_json::json;

use super::{assert_noted, convert, convert_bpe, owned, strings, tiny_bpe, tokens};
use crate::fixtures::tokenizer_files::{added, rows};

#[test]
fn token_texts_and_types_equal_llama_cpps_conversion() {
    let found = convert_bpe(&tiny_bpe(), &rows(8)).unwrap();
    let wanted = [
        ("a", 1),
        ("b", 1),
        ("ab", 1),
        ("[PAD3]", 5),
        ("<|end|>", 3), // looks special
        ("a b", 4),     // matched in raw text: went through the decoder
        (" x", 4),      // normalized already, but for the visible space
        ("[PAD7]", 5),
    ];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
    assert_eq!(found.len, 8);
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b"]);
    assert_noted(&found, "skipped 1 merges of tokens with spaces");
    assert_eq!(found.metadata.bool("tokenizer.ggml.add_bos_token"), Some(false));
    // Without a configuration, the used tokens determine the vocabulary size, which is too small here.
    let fault = convert_bpe(&tiny_bpe(), &VocabularyOptions::default()).unwrap_err().to_string();
    assert!(fault.contains("token id 6 does not fit a vocabulary of 6"), "{fault}");
}

#[test]
fn tokens_only_in_the_configuration_get_the_next_ids() {
    let mut tokenizer = tiny_bpe();
    tokenizer["added_tokens"] = json!([added(3, "<|end|>", true, false)]);
    let config = json!({
        "pad_token": "<pad>", "eos_token": "<|end|>", "bos_token": "a",
        "added_tokens_decoder": {"3": {"content": "<|end|>"}, "4": {"content": "new"}}
    });
    let tokenizer = tokenizer.to_string();
    let config = config.to_string();
    let files: [(&str, &[u8]); 2] =
        [("tokenizer.json", tokenizer.as_bytes()), ("tokenizer_config.json", config.as_bytes())];
    let found = convert(&files, VocabularyKind::Bpe, &VocabularyOptions::default()).unwrap();
    let wanted = [("a", 3), ("b", 1), ("ab", 1), ("<|end|>", 3), ("new", 4), ("<pad>", 3)];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
}

#[test]
fn merges_come_from_merges_txt_if_tokenizer_json_has_none() {
    let mut tokenizer = tiny_bpe();
    tokenizer["model"]["merges"] = json!([]);
    let json = tokenizer.to_string();
    let files: [(&str, &[u8]); 2] =
        [("tokenizer.json", json.as_bytes()), ("merges.txt", b"#version\n\na b\nbad\n")];
    let found = convert(&files, VocabularyKind::Bpe, &rows(8)).unwrap();
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b"]);
    assert_noted(&found, "skipped line 4");
}

#[test]
fn merges_without_a_token_fail() {
    for (merge, missing) in
        [(json!(["b", "a"]), "\"ba\""), (json!(["ab", "x"]), "\"x\""), (json!("x b"), "\"x\"")]
    {
        let mut tokenizer = tiny_bpe();
        tokenizer["model"]["merges"] = json!([["a", "b"], merge, ["z", "z"]]);
        let fault = convert_bpe(&tokenizer, &rows(8)).unwrap_err().to_string();
        assert!(fault.contains("merge 1, ") && fault.contains(missing), "{fault}");
        assert!(fault.contains("(1 more merges have such tokens)"), "{fault}");
    }
}

#[test]
fn normalizers_before_the_bytes_are_noted() {
    for (normalizer, noted) in [
        (json!({"type": "Lowercase"}), "normalizes text by Lowercase"),
        (json!({"type": "StripAccents"}), "normalizes text by StripAccents"),
        (json!({"type": "Strip", "strip_left": true}), "normalizes text by {\"type\":\"Strip\""),
        (
            json!({"type": "Replace", "pattern": {"String": "x"}, "content": "y"}),
            "normalizes text by Replace(\"x\", \"y\")",
        ),
    ] {
        let mut tokenizer = tiny_bpe();
        tokenizer["normalizer"] = normalizer;
        let found = convert_bpe(&tokenizer, &rows(8)).unwrap();
        assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("gpt-2"));
        assert_noted(&found, noted);
    }
}
