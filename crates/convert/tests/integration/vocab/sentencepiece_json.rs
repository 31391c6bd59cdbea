//! SentencePiece-style `tokenizer.json` without `tokenizer.model`.

use gguf_convert::vocab::VocabularyOptions;
use gguf_models::convert::VocabularyKind;
use serde_json::{Value, json};

use super::{convert, owned, strings, tokens};
use crate::fixtures::tokenizer_files::{added, rows};

fn tokenizer() -> Value {
    json!({
        "added_tokens": [added(0, "<unk>", true, false), added(1, "<s>", true, false), added(7, "<t>", false, false)],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"},
        ]},
        "pre_tokenizer": null,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
            "merges": [["a", "b"], ["\u{2581}", "ab"]],
            "vocab": {"<unk>": 0, "<s>": 1, "a": 2, "b": 3, "\u{2581}": 4, "ab": 5, "\u{2581}ab": 6},
        },
    })
}

fn scores(metadata: &gguf::Metadata) -> Vec<f64> {
    metadata.array("tokenizer.ggml.scores").unwrap().iter().map(|v| v.to_f64().unwrap()).collect()
}

#[test]
fn families_with_sentencepiece_models_accept_it() {
    let json = tokenizer().to_string();
    for kind in [
        VocabularyKind::Llama,
        VocabularyKind::LlamaHf,
        VocabularyKind::Bpe,
        VocabularyKind::BpeElseSentencePiece,
        VocabularyKind::SentencePieceElseBpe,
        VocabularyKind::SentencePiece,
        VocabularyKind::SentencePieceThenPrefix,
        VocabularyKind::Gemma { first: false },
        VocabularyKind::Phi3,
        VocabularyKind::InternLm2,
        VocabularyKind::InternLm3,
        VocabularyKind::Nemotron,
        VocabularyKind::Jamba,
        VocabularyKind::Arctic,
        VocabularyKind::T5,
    ] {
        let found = convert(&[("tokenizer.json", json.as_bytes())], kind, &rows(9)).unwrap();
        let expected = [
            ("<unk>", 3),
            ("<s>", 3),
            ("a", 1),
            ("b", 1),
            ("\u{2581}", 1),
            ("ab", 1),
            ("\u{2581}ab", 1),
            ("<t>", 4),
            ("[PAD8]", 5),
        ];
        assert_eq!(tokens(&found.metadata), owned(&expected), "{kind:?}");
        assert_eq!(scores(&found.metadata)[2..7], [-2.0, -2.0, -2.0, 0.0, -1.0], "{kind:?}");
        assert_eq!(found.metadata.str("tokenizer.ggml.model"), Some("llama"), "{kind:?}");
        assert_eq!(found.metadata.u64("tokenizer.ggml.bos_token_id"), Some(1), "{kind:?}");
        assert_eq!(found.metadata.u64("tokenizer.ggml.unknown_token_id"), Some(0), "{kind:?}");
    }
}

#[test]
fn space_prefix_follows_normalizer_and_pre_tokenizer() {
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme});
    for (normalizer, pre_tokenizer, prefix) in [
        (tokenizer()["normalizer"].clone(), Value::Null, None),
        (replace, Value::Null, Some(false)),
        (Value::Null, metaspace("always"), None),
        (Value::Null, metaspace("first"), None),
        (Value::Null, metaspace("never"), Some(false)),
        (Value::Null, json!({"type": "Metaspace", "add_prefix_space": false}), Some(false)),
    ] {
        let mut tokenizer = tokenizer();
        tokenizer["normalizer"] = normalizer;
        tokenizer["pre_tokenizer"] = pre_tokenizer;
        let json = tokenizer.to_string();
        let files = [("tokenizer.json", json.as_bytes())];
        let found = convert(&files, VocabularyKind::Llama, &VocabularyOptions::default()).unwrap();
        let found = found.metadata.bool("tokenizer.ggml.add_space_prefix");
        assert_eq!(found, prefix, "{tokenizer}");
    }
}

#[test]
fn without_post_processor_and_configuration_no_bos_is_added() {
    let mut tokenizer = tokenizer();
    tokenizer["post_processor"] = Value::Null;
    let json = tokenizer.to_string();
    let mut files = vec![("tokenizer.json", json.as_bytes())];
    let adds = |files: &[(&str, &[u8])]| {
        let found = convert(files, VocabularyKind::Llama, &VocabularyOptions::default()).unwrap();
        found.metadata.bool("tokenizer.ggml.add_bos_token")
    };
    assert_eq!(adds(&files), Some(false));
    files.push(("tokenizer_config.json", br#"{"tokenizer_class": "LlamaTokenizer"}"#));
    assert_eq!(adds(&files), None);
}

#[test]
fn t5_accepts_byte_level_bpe() {
    let tokenizer = super::tiny_bpe().to_string();
    let files = [("tokenizer.json", tokenizer.as_bytes())];
    let found = convert(&files, VocabularyKind::T5, &rows(8)).unwrap();
    assert_eq!(found.metadata.str("tokenizer.ggml.model"), Some("gpt2"));
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b"]);
}
