//! SentencePiece BPE models.

use gguf_convert::vocab::VocabularyOptions;
use gguf_models::convert::VocabularyKind;
use serde_json::json;

use super::{assert_noted, convert, owned, tokens};
use crate::fixtures::tokenizer_files::{added, bytes, number, piece, rows};

/// Encodes a SentencePiece model with six pieces, one of each type, and a dummy prefix.
pub fn tiny_sentencepiece() -> Vec<u8> {
    [
        piece("<unk>", 0.0, 2),
        piece("<s>", 0.0, 3),
        piece("<0x0A>", 0.0, 6),
        piece("\u{2581}a", -1.5, 1),
        piece("user", 0.0, 4),
        piece("unused", 0.0, 5),
        bytes(2, &number(3, 2)),
        bytes(3, &[number(3, 1), number(4, 0)].concat()),
    ]
    .concat()
}

#[test]
fn tokens_are_replaced_and_padded() {
    let model = tiny_sentencepiece();
    let config = json!({"added_tokens_decoder": {
        "4": {"content": "\u{2581}u", "special": false},
        "5": {"content": "[INST]", "special": true},
        "99": {"content": "far", "special": true},
    }});
    let config = config.to_string();
    let files: [(&str, &[u8]); 3] = [
        ("tokenizer.model", &model),
        ("added_tokens.json", br#"{"new": 6}"#),
        ("tokenizer_config.json", config.as_bytes()),
    ];
    let found = convert(&files, VocabularyKind::SentencePieceElseBpe, &rows(8)).unwrap();
    let wanted = [
        ("<unk>", 2),
        ("<s>", 3),
        ("<0x0A>", 6),
        ("\u{2581}a", 1),
        (" u", 4),
        ("[INST]", 3),
        ("new", 4),
        ("[PAD7]", 5),
    ];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
    assert_eq!(
        found.metadata.array("tokenizer.ggml.scores").unwrap(),
        &gguf::Array::from(&[0.0f32, 0.0, 0.0, -1.5, -1000.0, -1000.0, -1000.0, -10000.0][..])
    );
    assert_eq!(found.metadata.str("tokenizer.ggml.model"), Some("llama"));
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("default"));
    assert_noted(&found, "\"far\"");

    // Without a size in the configuration, the model's own size counts. A smaller size truncates.
    let only = [("tokenizer.model", &model[..])];
    let found = convert(&only, VocabularyKind::Llama, &VocabularyOptions::default()).unwrap();
    assert_eq!(found.len, 6);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let found = convert(&only, VocabularyKind::Llama, &rows(4)).unwrap();
    assert_eq!(found.len, 4);
    assert_noted(&found, "has 6 tokens");
}

#[test]
fn settings_that_runtimes_ignore_are_noted() {
    let pieces = piece("a", 0.0, 1);
    let noted = |model: Vec<u8>, part: &str| {
        let model = [&pieces[..], &model].concat();
        let found = convert(
            &[("tokenizer.model", &model)],
            VocabularyKind::Llama,
            &VocabularyOptions::default(),
        );
        assert_noted(&found.unwrap(), part);
    };
    noted(bytes(2, &number(3, 3)), "into words");
    noted(bytes(3, &number(3, 0)), "does not add a space in front of a text");
    noted(bytes(3, &number(4, 1)), "removes extra spaces");
}

#[test]
fn damaged_models_fail() {
    let whole = tiny_sentencepiece();
    let fault = |bytes: &[u8]| {
        convert(&[("tokenizer.model", bytes)], VocabularyKind::Llama, &VocabularyOptions::default())
            .map(|_| ())
    };
    for end in 1..whole.len() {
        // A model that is truncated between fields is only smaller. Other damage is an error, not a panic.
        if let Err(fault) = fault(&whole[..end]) {
            assert!(fault.to_string().contains("at byte"), "{fault}");
        }
    }
    for (model, what) in [
        (vec![], "no pieces, at byte 0"),
        (b"not a model".to_vec(), "at byte"),
        (piece("x", 0.0, 9), "a piece of an unknown type"),
        (number(1, 1), "a number instead of a message, at byte 0"),
        (bytes(1, &bytes(1, &[0xFF])), "a piece is not UTF-8, at byte 4"),
        (bytes(1, &number(1, 1)), "a piece with a value of the wrong type, at byte 2"),
        (vec![0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], "a value ends behind its message, at byte 6"),
    ] {
        let fault = fault(&model).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault}");
    }
}

#[test]
fn vocabulary_in_tokenizer_json_keeps_the_order_of_ids() {
    let tokenizer = json!({
        "added_tokens": [
            added(0, "<unk>", true, false),
            added(1, "<s>", true, false),
            added(4, "[X]", true, false),
        ],
        "decoder": {"type": "Sequence", "decoders": []},
        "model": {
            "type": "BPE", "byte_fallback": true, "merges": [],
            "vocab": {"<unk>": 0, "<s>": 1, "<0x0a>": 2, "\u{2581}a": 3}
        }
    });
    let config = json!({"tokenizer_class": "LlamaTokenizer", "eos_token": null,
        "add_prefix_space": false});
    let tokenizer = tokenizer.to_string();
    let config = config.to_string();
    let files: [(&str, &[u8]); 2] =
        [("tokenizer.json", tokenizer.as_bytes()), ("tokenizer_config.json", config.as_bytes())];
    // `[X]` is marked special, though no field of the configuration names it.
    let found = convert(&files, VocabularyKind::Llama, &VocabularyOptions::default()).unwrap();
    let wanted = [("<unk>", 3), ("<s>", 3), ("<0x0a>", 6), ("\u{2581}a", 1), ("[X]", 3)];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
    assert_eq!(found.metadata.iter().next().unwrap().0, "tokenizer.ggml.add_space_prefix");
    assert_eq!(found.metadata.str("tokenizer.ggml.model"), Some("llama"));
}

#[test]
fn exceptions_for_llama_models() {
    let model = tiny_sentencepiece();
    let with = |size| {
        convert(&[("tokenizer.model", &model)], VocabularyKind::Llama, &rows(size))
            .unwrap()
            .metadata
    };
    assert_eq!(with(32016).u64("tokenizer.ggml.eot_token_id"), Some(32010));
    assert_eq!(with(49152).bool("tokenizer.ggml.add_bos_token"), Some(false));
    assert_eq!(with(32000).bool("tokenizer.ggml.add_bos_token"), None);
}
