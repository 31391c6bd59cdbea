//! WordPiece, Unigram, tiktoken and RWKV World vocabularies, and files from before `tokenizer.json`.

use std::fs;

use gguf_convert::vocab::{Vocabulary, VocabularyOptions, load};
use gguf_models::convert::VocabularyKind;
use serde_json::{Value, json};

use super::{convert, owned, reference_checkpoints, strings, tokens};
use crate::fixtures::tokenizer_files::{bytes, number, piece, rows};

fn failure(files: &[(&str, &[u8])], kind: VocabularyKind, options: &VocabularyOptions) -> String {
    convert(files, kind, options).unwrap_err().to_string()
}

fn texts(found: &Vocabulary) -> Vec<String> {
    strings(&found.metadata, "tokenizer.ggml.tokens")
}

fn types(found: &Vocabulary) -> Vec<i64> {
    found.metadata.array("tokenizer.ggml.token_type").unwrap().to_i64s().unwrap()
}

fn integer(found: &Vocabulary, key: &str) -> Option<i64> {
    found.metadata.get(&format!("tokenizer.ggml.{key}"))?.to_i64()
}

fn keys(found: &Vocabulary) -> Vec<&str> {
    found
        .metadata
        .iter()
        .map(|(key, _)| key.strip_prefix("tokenizer.ggml.").unwrap_or(key))
        .collect()
}

/// Vocabulary files from before `tokenizer.json` convert to the same keys and values.
#[test]
fn legacy_files_convert_to_the_same_keys() {
    let Some(zoo) = reference_checkpoints() else { return };
    for (folder, kind) in [
        ("gpt2", VocabularyKind::Bpe),
        ("gptj", VocabularyKind::Bpe),
        ("whisper", VocabularyKind::Bpe),
        ("bert", VocabularyKind::Encoder),
    ] {
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(zoo.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            let wanted = path.extension().is_some_and(|e| e == "json" || e == "txt");
            if wanted && name != "tokenizer.json" {
                fs::copy(&path, copy.path().join(name)).unwrap();
            }
        }
        let config: Value =
            serde_json::from_slice(&fs::read(copy.path().join("config.json")).unwrap()).unwrap();
        let options = rows(config["vocab_size"].as_u64().unwrap());
        let old = load(copy.path(), kind, &options).unwrap().metadata;
        let new = load(&zoo.join(folder), kind, &options).unwrap().metadata;
        let keys: Vec<_> = new.iter().map(|(key, _)| key).collect();
        assert_eq!(old.iter().map(|(key, _)| key).collect::<Vec<_>>(), keys, "{folder}");
        for ((key, old), (_, new)) in old.iter().zip(new.iter()) {
            assert!(old == new, "{folder}: {key}");
        }
    }
}

#[test]
fn word_pieces_get_a_word_start_mark() {
    let pieces = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\n\xE2\x96\x81\n";
    let config = br#"{"type_vocab_size": 3, "pad_token_id": 0}"#;
    let files = [("vocab.txt", &pieces[..]), ("config.json", config)];
    let found = convert(&files, VocabularyKind::Encoder, &rows(9)).unwrap();
    let wanted = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "\u{2581}he",
        "llo",
        "\u{2581}\u{2581}",
        "\u{2581}[PAD8]",
    ];
    assert_eq!(texts(&found), wanted);
    assert_eq!(types(&found), [3, 3, 3, 3, 3, 1, 1, 1, 5]);
    assert_eq!(
        keys(&found),
        [
            "token_type_count",
            "model",
            "pre",
            "tokens",
            "token_type",
            "bos_token_id",
            "eos_token_id",
            "unknown_token_id",
            "seperator_token_id",
            "padding_token_id",
            "mask_token_id",
            "add_bos_token",
            "add_eos_token",
            "add_sep_token",
            "normalizer.lowercase"
        ]
    );
    assert_eq!(integer(&found, "token_type_count"), Some(3));
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("bert-bge"));
    let cased = (
        "tokenizer_config.json",
        &br#"{"do_lower_case": false, "strip_accents": true, "tokenizer_class": "BertTokenizer"}"#
            [..],
    );
    let found = convert(&[files[0], cased], VocabularyKind::Encoder, &rows(8)).unwrap();
    assert_eq!(found.metadata.bool("tokenizer.ggml.normalizer.lowercase"), Some(false));
    assert_eq!(found.metadata.bool("tokenizer.ggml.normalizer.strip_accents"), Some(true));
}

#[test]
fn unsupported_word_piece_settings_fail() {
    let tokenizer = |normalizer: Value, prefix: &str| {
        json!({"normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "vocab": {"a": 0}, "continuing_subword_prefix": prefix}})
        .to_string()
    };
    let bert = json!({"type": "BertNormalizer", "lowercase": true});
    let other = tokenizer(json!({"type": "NFC"}), "##");
    let files = [("tokenizer.json", other.as_bytes())];
    let message = failure(&files, VocabularyKind::Encoder, &VocabularyOptions::default());
    assert!(message.contains("normalizer is \"NFC\"") && message.contains("--pre"), "{message}");
    let asked = VocabularyOptions { pre: Some("bert-bge"), ..VocabularyOptions::default() };
    assert!(convert(&files, VocabularyKind::Encoder, &asked).is_ok());
    let other = tokenizer(bert, "@@");
    let files = [("tokenizer.json", other.as_bytes())];
    let message = failure(&files, VocabularyKind::Encoder, &VocabularyOptions::default());
    assert!(message.contains("\"@@\""), "{message}");
}

/// Encodes a SentencePiece Unigram model.
fn unigram(pieces: &[(&str, f32, u8)]) -> Vec<u8> {
    let mut model: Vec<u8> =
        pieces.iter().flat_map(|&(text, score, kind)| piece(text, score, kind)).collect();
    model.extend(bytes(2, &number(3, 1)));
    model.extend(bytes(3, &[bytes(2, &[9, 8, 7]), number(3, 1), number(4, 0)].concat()));
    model
}

#[test]
fn t5_keeps_scores_and_normalizer() {
    let model = unigram(&[("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2), ("a", -1.5, 1)]);
    let files = [
        ("spiece.model", &model[..]),
        ("added_tokens.json", br#"{"<x>": 4}"#),
        // llama.cpp's converter ignores these.
        ("tokenizer_config.json", br#"{"added_tokens_decoder": {"5": {"content": "<y>"}}}"#),
    ];
    let found = convert(&files, VocabularyKind::T5, &rows(6)).unwrap();
    assert_eq!(texts(&found), ["<pad>", "</s>", "<unk>", "a", "<x>", "[PAD5]"]);
    assert_eq!(types(&found), [3, 3, 2, 1, 4, 5]);
    let scores = found.metadata.array("tokenizer.ggml.scores").unwrap();
    let scores: Vec<f64> = scores.iter().map(|s| s.to_f64().unwrap()).collect();
    assert_eq!(scores, [0.0, 0.0, 0.0, -1.5, -1000.0, -10000.0]);
    assert_eq!(
        keys(&found),
        [
            "model",
            "pre",
            "tokens",
            "scores",
            "token_type",
            "add_space_prefix",
            "remove_extra_whitespaces",
            "precompiled_charsmap"
        ]
    );
    assert_eq!(found.metadata.bool("tokenizer.ggml.remove_extra_whitespaces"), Some(false));
    let map = found.metadata.array("tokenizer.ggml.precompiled_charsmap").unwrap();
    assert_eq!(map.to_i64s().unwrap(), [9, 8, 7]);
    assert_eq!(map.element_type(), gguf::ValueType::U8);
}

#[test]
fn xlm_roberta_shifts_token_ids() {
    let model = unigram(&[
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("</s>", 0.0, 3),
        ("a", -1.5, 1),
        ("b", -2.5, 1),
    ]);
    let files = [("sentencepiece.bpe.model", &model[..])];
    let found = convert(&files, VocabularyKind::Encoder, &rows(7)).unwrap();
    assert_eq!(texts(&found), ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "[PAD5]"]);
    assert_eq!(types(&found), [3, 3, 3, 2, 1, 1, 5]);
    assert_eq!(
        keys(&found)[5..],
        [
            "add_space_prefix",
            "token_type_count",
            "remove_extra_whitespaces",
            "precompiled_charsmap",
            "unknown_token_id"
        ]
    );
}

#[test]
fn tiktoken_file_becomes_merges() {
    // a b c ab abc
    let ranks = b"YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYWJj 4\n";
    let files = [("qwen.tiktoken", &ranks[..])];
    let found = convert(&files, VocabularyKind::Bpe, &rows(220)).unwrap();
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b", "ab c"]);
    assert_eq!(texts(&found)[3..8], ["ab", "abc", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
    assert_eq!(texts(&found)[212..214], ["<|extra_204|>", "[PAD213]"]);
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("qwen2"));
    assert_eq!(integer(&found, "bos_token_id"), Some(5));
    assert_eq!(integer(&found, "unknown_token_id"), Some(5));

    // The tokenizer class of Hunyuan determines the special tokens, not the pre-tokenizer.
    let files = [("hy.tiktoken", &ranks[..]), ("config.json", br#"{"bos_token_id": 1}"#)];
    let of_family = VocabularyOptions { hints: &["hunyuan"], ..rows(215) };
    let found = convert(&files, VocabularyKind::HunyuanMoe, &of_family).unwrap();
    assert_eq!(texts(&found)[5..9], ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>"]);
    assert_eq!(texts(&found)[214], "<|extra_204|>");
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("hunyuan"));
    assert_eq!(integer(&found, "bos_token_id"), Some(7));

    // Under another file name, the model's hints or the user determine the pre-tokenizer.
    let files = [("tokenizer.model", &ranks[..])];
    let message = failure(&files, VocabularyKind::Bpe, &rows(5));
    assert!(message.contains("tokenizer.model") && message.contains("--pre"), "{message}");
    let hinted = VocabularyOptions { hints: &["llama-bpe"], ..rows(5) };
    for kind in [VocabularyKind::Bpe, VocabularyKind::Llama, VocabularyKind::SentencePieceElseBpe] {
        let found = convert(&files, kind, &hinted).unwrap();
        assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("llama-bpe"));
    }
}

#[test]
fn rwkv_world_tokens_are_python_literals() {
    let lines = "1 '\\x00' 1\n2 b'\\xe4\\xb8' 2\n3 '\u{4E2D}' 3\n4 \"'\" 1\n";
    let config = br#"{"bos_token_id": 7, "pad_token_id": 1}"#;
    let files = [("rwkv_vocab_v20230424.txt", lines.as_bytes()), ("config.json", config)];
    let found = convert(&files, VocabularyKind::Rwkv, &rows(6)).unwrap();
    assert_eq!(texts(&found), ["<s>", r"\x00", r"\xe4\xb8", r"\xe4\xb8\xad", "'", "[PAD5]"]);
    assert_eq!(types(&found), [3, 1, 1, 1, 1, 5]);
    assert_eq!(
        keys(&found),
        [
            "model",
            "tokens",
            "token_type",
            "bos_token_id",
            "padding_token_id",
            "eos_token_id",
            "tokenizer.chat_template"
        ]
    );
    assert_eq!(integer(&found, "bos_token_id"), Some(0));
    let message = failure(&files, VocabularyKind::Rwkv, &rows(4));
    assert!(message.contains("5 tokens for 4 rows"), "{message}");
    let files = [("rwkv_vocab_v20230424.txt", &b"1 'a' 1\n2 'a' 2\n"[..])];
    let message = failure(&files, VocabularyKind::Rwkv, &rows(4));
    assert!(message.contains("line 2"), "{message}");
}

#[test]
fn invalid_files_are_named() {
    for (files, kind, parts) in [
        (
            vec![("vocab.json", &b"{\"a\": 0}"[..])],
            VocabularyKind::Bpe,
            ["vocab.json", "merges.txt"],
        ),
        (vec![("a.tiktoken", b"YQ== 0\nYQ==\n")], VocabularyKind::Bpe, ["a.tiktoken", "line 2"]),
        (vec![("vocab.txt", b"\xFF")], VocabularyKind::Encoder, ["vocab.txt", "UTF-8"]),
        (vec![], VocabularyKind::T5, ["no tokenizer", "copy the tokenizer files"]),
        (vec![], VocabularyKind::Encoder, ["no tokenizer", "copy the tokenizer files"]),
        (
            vec![("tokenizer.json", br#"{"model": {"type": "WordPiece"}}"#)],
            VocabularyKind::T5,
            ["tokenizer.json", "Unigram"],
        ),
        (
            vec![("tokenizer.json", br#"{"model": {"type": "Unigram", "vocab": [["a"]]}}"#)],
            VocabularyKind::T5,
            ["tokenizer.json", "piece 0"],
        ),
        (
            vec![(
                "tokenizer.json",
                br#"{"model": {"type": "Unigram", "vocab": [["a", 0]]},
                    "normalizer": {"precompiled_charsmap": "?"}}"#,
            )],
            VocabularyKind::Encoder,
            ["precompiled_charsmap", "base64"],
        ),
        (
            vec![("vocab.json", br#"{"a": 9}"#), ("merges.txt", b"")],
            VocabularyKind::Bpe,
            ["vocab.json", "token id 9 does not fit a vocabulary of 1"],
        ),
    ] {
        let message = failure(&files, kind, &rows(1));
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}

#[test]
fn unigram_in_tokenizer_json_alone_has_its_unknown_and_added_tokens() {
    let tokenizer = json!({
        "added_tokens": [
            {"id": 0, "content": "<unk>", "special": true},
            {"id": 1, "content": "<s>", "special": true},
            {"id": 3, "content": "<t>", "special": false},
            {"id": 4, "content": "<u>", "special": true},
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["<s>", 0.0], ["a", -1.0]]},
    })
    .to_string();
    let files = [("tokenizer.json", tokenizer.as_bytes())];
    for kind in [VocabularyKind::T5, VocabularyKind::Encoder] {
        let found = convert(&files, kind, &rows(6)).unwrap();
        let expected = [("<unk>", 2), ("<s>", 3), ("a", 1), ("<t>", 4), ("<u>", 3), ("[PAD5]", 5)];
        assert_eq!(tokens(&found.metadata), owned(&expected));
        assert_eq!(integer(&found, "unknown_token_id"), Some(0));
        let folds = found.metadata.bool("tokenizer.ggml.remove_extra_whitespaces");
        assert_eq!(folds, Some(false));
    }
}
