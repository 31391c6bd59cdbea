//! Round trips of vocabularies: the exported tokenizer files convert to the same `tokenizer.*` keys.

use std::fs;
use std::path::Path;

use gguf::{Array, Metadata};
use gguf_convert::export;
use gguf_convert::export::Tokenizer;
use gguf_convert::vocab::{VocabularyOptions, load};
use gguf_models::convert::VocabularyKind;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::fixtures::reference_data;
use crate::fixtures::tokenizer_files::{added, bytes, folder, number, piece, rows};

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Exports a tokenizer, and asserts that the `tokenizers` library loads `tokenizer.json` with the same ids.
#[track_caller]
fn exported(metadata: &Metadata, kind: VocabularyKind, hints: &[&str], rows: u64) -> Tokenizer {
    let out = export::tokenizer(metadata, kind, hints, &json!({ "vocab_size": rows })).unwrap();
    if let Some(file) = out.files.iter().find(|file| file.name == "tokenizer.json") {
        let loaded = tokenizers::Tokenizer::from_bytes(&file.bytes).unwrap();
        let written: Value = serde_json::from_slice(&file.bytes).unwrap();
        for token in written["added_tokens"].as_array().unwrap() {
            let id = loaded.token_to_id(token["content"].as_str().unwrap());
            assert_eq!(id.map(u64::from), token["id"].as_u64(), "{token}");
        }
    }
    out
}

/// Returns keys with values, sorted.
fn keys(metadata: &Metadata) -> Vec<String> {
    let mut keys: Vec<_> = metadata.iter().map(|(key, value)| format!("{key} {value:?}")).collect();
    keys.sort_unstable();
    keys
}

/// Asserts that the export of a tokenizer converts to the same keys. Returns the names of the exported files.
#[track_caller]
fn assert_round_trip(
    from: &Path,
    architecture: &'static str,
    kind: VocabularyKind,
    options: &VocabularyOptions,
) -> Vec<&'static str> {
    let mut original = load(from, kind, options).unwrap();
    original.metadata.set("general.architecture", architecture);
    let rows = original.len as u64;
    let tokenizer = exported(&original.metadata, kind, options.hints, rows);
    assert_eq!(tokenizer.notes, [] as [String; 0], "{}", from.display());
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tokenizer, rows);
    let mut exported_again = load(dir.path(), kind, options).unwrap();
    exported_again.metadata.set("general.architecture", architecture);
    assert_eq!(keys(&exported_again.metadata), keys(&original.metadata), "{}", from.display());
    tokenizer.files.iter().map(|file| file.name).collect()
}

fn write(dir: &Path, tokenizer: &Tokenizer, rows: u64) {
    for file in &tokenizer.files {
        fs::write(dir.join(file.name), &file.bytes).unwrap();
    }
    let mut config = tokenizer.config.clone();
    config.insert("vocab_size".into(), rows.into());
    fs::write(dir.join("config.json"), Value::from(config).to_string()).unwrap();
}

#[test]
fn reference_vocabularies_round_trip() {
    let Some(data) = reference_data() else { return };
    for (folder, kind, hints) in [
        ("llama", VocabularyKind::Llama, &[][..]),
        ("mistral", VocabularyKind::Llama, &[]),
        ("mixtral", VocabularyKind::Llama, &[]),
        ("mixed-llama", VocabularyKind::Llama, &[]),
        ("gptq-llama", VocabularyKind::Llama, &[]),
        ("fp8-llama", VocabularyKind::Llama, &[]),
        ("gemma2", VocabularyKind::Gemma { first: false }, &[]),
        ("gemma3", VocabularyKind::Gemma { first: false }, &[]),
        ("phi3", VocabularyKind::Phi3, &["dbrx", "gpt-4o"]),
        ("qwen2", VocabularyKind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3", VocabularyKind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3moe", VocabularyKind::Bpe, &["qwen2"]),
        ("gpt2", VocabularyKind::Bpe, &["gpt-2"]),
        ("gptj", VocabularyKind::Bpe, &["gpt-2"]),
        ("gpt_neox", VocabularyKind::Bpe, &["gpt-2"]),
        ("mamba", VocabularyKind::BpeElseSentencePiece, &["gpt-2"]),
        ("mpt", VocabularyKind::Bpe, &["mpt"]),
        ("bloom", VocabularyKind::Bpe, &["bloom"]),
        ("falcon", VocabularyKind::Bpe, &["falcon"]),
        ("stablelm", VocabularyKind::Bpe, &["stablelm2", "gpt-2"]),
        ("olmo2", VocabularyKind::Bpe, &["dbrx"]),
        ("rwkv", VocabularyKind::Rwkv, &["gpt-2"]),
        ("whisper", VocabularyKind::Bpe, &["gpt-2"]),
        ("bert", VocabularyKind::Encoder, &[]),
    ] {
        let dir = data.join("zoo").join(folder);
        let vocab_size = read_json(&dir.join("config.json"))["vocab_size"].as_u64();
        let architecture = if folder == "gpt_neox" { "gptneox" } else { folder };
        let options = VocabularyOptions { hints, vocab_size, ..VocabularyOptions::default() };
        assert_round_trip(&dir, architecture, kind, &options);
    }
}

type Files<'f> = &'f [(&'f str, &'f [u8])];

/// Asserts the round trip of these tokenizer files.
#[track_caller]
fn assert_files_round_trip(
    files: Files,
    architecture: &'static str,
    kind: VocabularyKind,
    options: &VocabularyOptions,
) -> Vec<&'static str> {
    assert_round_trip(folder(files).path(), architecture, kind, options)
}

/// Encodes a SentencePiece model: pieces with scores and types, algorithm, dummy prefix, character map.
fn model(pieces: &[(&str, f32, u8)], algorithm: u8, prefix: u8, charsmap: &[u8]) -> Vec<u8> {
    let piece = |&(text, score, kind): &(&str, f32, u8)| piece(text, score, kind);
    let mut model: Vec<u8> = pieces.iter().flat_map(piece).collect();
    model.extend(bytes(2, &number(3, algorithm)));
    model.extend(bytes(3, &[bytes(2, charsmap), number(3, prefix), number(4, 0)].concat()));
    model
}

const PAIRS: &[(&str, f32, u8)] = &[
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("<0x41>", 0.0, 6),
    ("symbol", 0.0, 4),
    ("unused", 0.0, 5),
    ("\u{2581}a", -0.0, 1),
    ("a", -1.5, 1),
    ("\u{2581}", -2.5, 1),
];

#[test]
fn sentencepiece_bpe_with_added_tokens_round_trip() {
    let pieces = model(PAIRS, 2, 1, b"");
    let config = json!({
        "bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true, "add_eos_token": false,
        "add_prefix_space": false,
        "chat_template": [
            { "name": "default", "template": "D" },
            { "name": "tool_use", "template": "T" },
        ],
        "added_tokens_decoder": {
            "0": { "content": "<unk>", "special": true },
            "4": { "content": "\u{2581}\u{2581}", "special": false },
            "9": { "content": "<|end|>", "special": false },
            "11": { "content": "[INST]", "special": false },
        },
    });
    let ids =
        json!({ "bos_token_id": 1, "eos_token_id": 2, "unk_token_id": 0, "pad_token_id": 12 });
    let (config, ids) = (config.to_string(), ids.to_string());
    let added = json!({ "<|user|>": 12, "\u{2581}x": 5 }).to_string();
    let files = [
        ("tokenizer.model", &pieces[..]),
        ("tokenizer_config.json", config.as_bytes()),
        ("config.json", ids.as_bytes()),
        ("added_tokens.json", added.as_bytes()),
    ];
    let names = ["tokenizer.model", "added_tokens.json", "tokenizer.json", "tokenizer_config.json"];
    for rows_of_kind in [9, 13, 16] {
        for kind in [
            VocabularyKind::Llama,
            VocabularyKind::SentencePiece,
            VocabularyKind::InternLm2,
            VocabularyKind::Phi3,
            VocabularyKind::T5,
        ] {
            assert_files_round_trip(&files, "llama", kind, &rows(rows_of_kind));
        }
        let kind = VocabularyKind::Gemma { first: true };
        assert_files_round_trip(&files, "gemma", kind, &rows(rows_of_kind));
    }
    assert_eq!(assert_files_round_trip(&files, "llama", VocabularyKind::Llama, &rows(16)), names);
    // Loaders that prefer `tokenizer.json` must not find one.
    let names =
        assert_files_round_trip(&files, "mamba", VocabularyKind::BpeElseSentencePiece, &rows(16));
    assert_eq!(names, ["tokenizer.model", "added_tokens.json", "tokenizer_config.json"]);
}

/// Gemma's vocabulary has runs of line breaks among trained tokens, and runs of tabs behind them. All of them are
/// user-defined tokens with merges.
#[test]
fn merges_of_user_defined_tokens_round_trip() {
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let special = ["<pad>", "<eos>", "<bos>", "<unk>"].map(|text| (text, -1000.0, 3));
    let trained = [("\n", 0.0, 1), ("\n\n", -1000.0, 4), ("a", -3.0, 1), ("aa", -1.0, 1)];
    let behind = [("\t", -1000.0, 4), ("\t\t", -1000.0, 4), ("<unused0>", -1000.0, 3)];
    let bytes = bytes.iter().map(|text| (&**text, 0.0, 6));
    let tokens: Vec<(&str, f32, i32)> =
        special.into_iter().chain(bytes).chain(trained).chain(behind).collect();
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "gemma3");
    metadata.set("tokenizer.ggml.model", "llama");
    metadata.set("tokenizer.ggml.pre", "default");
    let texts = tokens.iter().map(|(text, ..)| *text);
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(texts));
    let scores: Vec<f32> = tokens.iter().map(|(_, score, _)| *score).collect();
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
    let types: Vec<i32> = tokens.iter().map(|(.., kind)| *kind).collect();
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    for (id, role) in ["padding", "eos", "bos", "unknown"].into_iter().enumerate() {
        metadata.set(format!("tokenizer.ggml.{role}_token_id"), id as u32);
    }
    metadata.set("tokenizer.ggml.add_bos_token", true);
    metadata.set("tokenizer.ggml.add_eos_token", false);
    metadata.set("tokenizer.ggml.add_sep_token", false);
    metadata.set("tokenizer.ggml.add_space_prefix", false);

    let out = exported(&metadata, VocabularyKind::Gemma { first: false }, &[], tokens.len() as u64);
    assert_eq!(out.notes, [] as [String; 0]);
    let json = out.files.iter().find(|file| file.name == "tokenizer.json").unwrap();
    let written: Value = serde_json::from_slice(&json.bytes).unwrap();
    assert_eq!(written["model"]["merges"], json!(["\n \n", "\t \t", "a a"]));
    let loaded = tokenizers::Tokenizer::from_bytes(&json.bytes).unwrap();
    let encoded = loaded.encode("\taa\t\t\n<unused0>", true).unwrap();
    assert_eq!(encoded.get_ids(), [2, 264, 263, 265, 260, 266]);
}

#[test]
fn unloadable_tokens_and_merges_are_skipped_or_noted() {
    let dir = folder(&[("tokenizer.json", byte_level(&Value::Null).to_string().as_bytes())]);
    let mut metadata = load(dir.path(), VocabularyKind::Bpe, &rows(11)).unwrap().metadata;
    let merges = ["a b", "b c", "ab b", "a", "a b b"];
    metadata.set("tokenizer.ggml.merges", Array::from_strings(merges));
    let out = exported(&metadata, VocabularyKind::Bpe, &["gpt-2"], 11);
    let left_out = "left out 4 merges: they name no tokens of the vocabulary, so they never apply";
    let lost = "the tokenizer files do not express `tokenizer.ggml.merges`";
    assert_eq!(out.notes, [left_out, lost]);

    let dir = folder(&[("tokenizer.json", unigram().to_string().as_bytes())]);
    let mut metadata = load(dir.path(), VocabularyKind::T5, &rows(7)).unwrap().metadata;
    metadata.set("general.architecture", "t5");
    metadata.set("tokenizer.ggml.precompiled_charsmap", Array::from(&[1u8, 2, 3][..]));
    let out =
        export::tokenizer(&metadata, VocabularyKind::T5, &[], &json!({ "vocab_size": 7 })).unwrap();
    let refused =
        "the `tokenizers` library reads tokenizer.json differently: its precompiled character map";
    assert!(out.notes[0].starts_with(refused), "{:?}", out.notes);
}

#[test]
fn internlm2_zero_token_round_trip() {
    let zero = [("\0", -3.0, 1), ("\u{1F409}", -4.0, 1), ("[UNUSED_TOKEN_1]", 0.0, 4)];
    let pieces = model(&[PAIRS, &zero].concat(), 2, 0, b"");
    let config = json!({ "added_tokens_decoder": {
        "12": { "content": "<|im_end|>", "special": true },
    } });
    let config = config.to_string();
    let files = [("tokenizer.model", &pieces[..]), ("tokenizer_config.json", config.as_bytes())];
    assert_files_round_trip(&files, "internlm2", VocabularyKind::InternLm2, &rows(14));
}

#[test]
fn llama_exceptions_round_trip() {
    let pieces = model(PAIRS, 2, 1, b"");
    for rows_of_kind in [32016, 49152] {
        assert_files_round_trip(
            &[("tokenizer.model", &pieces)],
            "llama",
            VocabularyKind::Llama,
            &rows(rows_of_kind),
        );
    }
    let tokenizer = json!({
        "added_tokens": [
            added(0, "<unk>", true, false), added(5, "<|x|>", true, false),
            added(6, "y", false, false),
        ],
        "decoder": { "type": "Sequence" },
        "post_processor": { "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>" } }, { "Sequence": { "id": "A" } }] },
        "model": { "type": "BPE", "byte_fallback": true, "merges": ["a b"],
            "vocab": { "<unk>": 0, "<s>": 1, "a": 2, "b": 3, "ab": 4 } },
    });
    let config = json!({ "bos_token": "<s>", "unk_token": "<unk>" }).to_string();
    let tokenizer = tokenizer.to_string();
    let files = [
        ("tokenizer.json", tokenizer.as_bytes()),
        ("tokenizer_config.json", config.as_bytes()),
        ("config.json", br#"{"bos_token_id": 1}"#),
    ];
    assert_files_round_trip(&files, "llama", VocabularyKind::Llama, &rows(7));
    assert_files_round_trip(&files, "gemma3", VocabularyKind::Gemma { first: false }, &rows(7));
}

#[test]
fn sentencepiece_unigram_round_trip() {
    let t5 =
        [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2), ("a", -1.5, 1), ("b", -2.0, 4)];
    let config = br#"{"pad_token_id": 0, "eos_token_id": 1, "unk_token_id": 2}"#;
    let flags = br#"{"add_bos_token": false, "add_eos_token": true}"#;
    let pieces = model(&t5, 1, 1, &[9, 8, 7]);
    let files = [
        ("spiece.model", &pieces[..]),
        ("config.json", config),
        ("tokenizer_config.json", flags),
        ("added_tokens.json", br#"{"<x>": 5}"#),
    ];
    let names = ["added_tokens.json", "spiece.model", "tokenizer_config.json"];
    assert_eq!(assert_files_round_trip(&files, "t5", VocabularyKind::T5, &rows(8)), names);

    let xlm =
        [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("a", -1.5, 1), ("b", -2.5, 1)];
    let pieces = model(&xlm, 1, 1, b"");
    let config = br#"{"bos_token_id": 0, "pad_token_id": 1, "type_vocab_size": 2}"#;
    let files = [
        ("sentencepiece.bpe.model", &pieces[..]),
        ("config.json", config),
        ("tokenizer_config.json", flags),
    ];
    for rows_of_kind in [6, 7, 9] {
        let found =
            assert_files_round_trip(&files, "bert", VocabularyKind::Encoder, &rows(rows_of_kind));
        assert_eq!(found, ["sentencepiece.bpe.model", "tokenizer_config.json"]);
    }
}

/// Returns a Unigram `tokenizer.json`.
fn unigram() -> Value {
    let special = |text: &str| json!({ "SpecialToken": { "id": text, "type_id": 0 } });
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let (first, last) = (special("<s>"), special("</s>"));
    json!({
        "added_tokens": [
            added(0, "<s>", true, false), added(1, "<pad>", true, false),
            added(2, "</s>", true, false), added(3, "<unk>", true, false),
            added(5, "user", false, false), added(6, "<mask>", true, false),
        ],
        "normalizer": { "type": "Precompiled", "precompiled_charsmap": "AAAAAGEA" },
        "pre_tokenizer": { "type": "Metaspace", "prepend_scheme": "always" },
        "post_processor": { "type": "TemplateProcessing",
            "single": [first, text("A"), last],
            "pair": [first, text("A"), last, last, text("B"), last] },
        "model": { "type": "Unigram", "unk_id": 3, "vocab": [
            ["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["a", -1.25],
            ["user", 0.0], ["<mask>", 0.0],
        ] },
    })
}

#[test]
fn unigram_json_round_trip() {
    let tokenizer = unigram().to_string();
    let config = json!({
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
        "cls_token": "<s>", "sep_token": "</s>", "mask_token": { "content": "<mask>" },
        "tokenizer_class": "XLMRobertaTokenizer", "clean_up_tokenization_spaces": true,
    });
    let config = config.to_string();
    let files =
        [("tokenizer.json", tokenizer.as_bytes()), ("tokenizer_config.json", config.as_bytes())];
    for (architecture, kind) in [("bert", VocabularyKind::Encoder), ("t5", VocabularyKind::T5)] {
        let names = assert_files_round_trip(&files, architecture, kind, &rows(9));
        assert_eq!(names, ["tokenizer.json", "tokenizer_config.json"]);
    }
}

#[test]
fn word_piece_round_trip() {
    let pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\n\u{2581}\n##\u{2581}\n##he\n";
    for config in [
        json!({ "do_lower_case": false, "strip_accents": true, "tokenizer_class": "BertTokenizer" }),
        json!({ "added_tokens_decoder": { "5": { "content": "he", "special": false } } }),
    ] {
        let config = config.to_string();
        let files = [
            ("vocab.txt", pieces.as_bytes()),
            ("config.json", br#"{"type_vocab_size": 2, "pad_token_id": 0}"#),
            ("tokenizer_config.json", config.as_bytes()),
        ];
        for rows_of_kind in [10, 12] {
            let names = assert_files_round_trip(
                &files,
                "bert",
                VocabularyKind::Encoder,
                &rows(rows_of_kind),
            );
            assert_eq!(names, ["tokenizer.json", "vocab.txt", "tokenizer_config.json"]);
        }
    }
}

#[test]
fn rwkv_world_round_trip() {
    let lines = "1 '\\x00' 1\n2 b'\\xe4\\xb8' 2\n3 '\u{4E2D}' 3\n4 \"'\" 1\n5 '\\n\\t\\\\' 3\n\
        6 '\\x7f\u{3000}\"\\'' 6\n";
    let names = ["rwkv_vocab_v20230424.txt", "tokenizer_config.json"];
    let world = ("rwkv_vocab_v20230424.txt", lines.as_bytes());
    let config = ("config.json", &br#"{"pad_token_id": 0}"#[..]);
    assert_eq!(
        assert_files_round_trip(&[world, config], "rwkv", VocabularyKind::Rwkv, &rows(300)),
        names
    );
    let template = ("tokenizer_config.json", &br#"{"chat_template": "own"}"#[..]);
    assert_eq!(
        assert_files_round_trip(&[world, template], "rwkv", VocabularyKind::Rwkv, &rows(7)),
        names
    );
}

/// Returns a byte-level tokenizer whose id 3 is unused.
fn byte_level(post_processor: &Value) -> Value {
    json!({
        "added_tokens": [
            added(4, "<s>", true, false), added(5, "</s>", true, false),
            added(6, "a\u{120}b", false, false),
            { "id": 7, "content": "\u{E9}", "special": false, "normalized": true },
            added(9, "<|turn|>", true, false), added(0, "a", true, false),
        ],
        "normalizer": { "type": "Lowercase" },
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "post_processor": post_processor,
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": [["a", "b"]] },
    })
}

#[test]
fn post_processors_round_trip() {
    let special = |text: &str| json!({ "SpecialToken": { "id": text, "type_id": 0 } });
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let (first, last, a, b) = (special("<s>"), special("</s>"), text("A"), text("B"));
    let template = |single: Value, pair: Value| json!({ "type": "TemplateProcessing", "single": single, "pair": pair });
    let templates = [
        Value::Null,
        json!({ "type": "ByteLevel" }),
        json!({ "type": "RobertaProcessing", "sep": ["</s>", 5], "cls": ["<s>", 4] }),
        template(json!([first, a]), json!([first, a, first, b])),
        template(json!([first, a]), json!([first, a, b])),
        template(json!([a, last]), json!([a, last, b, last])),
        template(json!([a, last]), json!([])),
        template(json!([first, a, last]), json!([first, a, last, b, last])),
        template(json!([first, a, last]), json!([first, a, last, last, b, last])),
        template(json!([first, a, last]), json!([first, a, last, first, b, last])),
    ];
    for (post_processor, config) in templates.iter().flat_map(|template| {
        [
            json!({ "bos_token": "<s>", "eos_token": "</s>", "pad_token": "a" }),
            json!({ "bos_token": "<s>", "eos_token": "<|turn|>", "add_eos_token": false }),
            json!({ "bos_token": "</s>", "eos_token": "</s>", "add_bos_token": true }),
            json!({ "cls_token": "<s>", "sep_token": "</s>", "add_sep_token": true }),
            json!({}),
        ]
        .map(|config| (template, config))
    }) {
        let (tokenizer, config) = (byte_level(post_processor).to_string(), config.to_string());
        let files = [
            ("tokenizer.json", tokenizer.as_bytes()),
            ("tokenizer_config.json", config.as_bytes()),
            ("config.json", br#"{"unk_token_id": 1}"#),
        ];
        for kind in [
            VocabularyKind::Bpe,
            VocabularyKind::Encoder,
            VocabularyKind::Glm4,
            VocabularyKind::ChatGlm,
            VocabularyKind::Rwkv,
        ] {
            assert_files_round_trip(&files, "test", kind, &rows(11));
        }
    }
}

#[test]
fn every_pre_tokenizer_round_trip() {
    let tokenizer = byte_level(&Value::Null).to_string();
    let files = [("tokenizer.json", tokenizer.as_bytes())];
    for name in [
        "gpt-2",
        "mpt",
        "olmo",
        "phi-2",
        "starcoder",
        "refact",
        "command-r",
        "smollm",
        "falcon",
        "llama-bpe",
        "smaug-bpe",
        "dbrx",
        "glm4",
        "chatglm-bpe",
        "qwen2",
        "stablelm2",
        "qwen35",
        "deepseek-v3",
        "deepseek-llm",
        "deepseek-coder",
        "bloom",
        "poro-chat",
        "viking",
        "gpt-4o",
        "llama4",
        "tekken",
        "roberta-bpe",
        "exaone",
        "superbpe",
        "gemma4",
        "kimi-k2",
    ] {
        let options = VocabularyOptions { pre: Some(name), ..rows(11) };
        let original = load(folder(&files).path(), VocabularyKind::Bpe, &options).unwrap();
        let tokenizer = exported(&original.metadata, VocabularyKind::Bpe, &[name], 11);
        assert_eq!(tokenizer.notes, [] as [String; 0], "{name}");
    }
    let metadata = load_pre(&files, "jina-v2-code");
    let notes = exported(&metadata, VocabularyKind::Bpe, &["gpt-2"], 11).notes.join("\n");
    assert!(notes.contains("--pre jina-v2-code"), "{notes}");
}

fn load_pre(files: Files, pre: &str) -> Metadata {
    load(
        folder(files).path(),
        VocabularyKind::Bpe,
        &VocabularyOptions { pre: Some(pre), ..rows(11) },
    )
    .unwrap()
    .metadata
}

/// Older programs wrote the vocabularies of some well-known models differently, which a note says.
#[test]
fn well_known_vocabularies_round_trip() {
    let Some(data) = reference_data() else { return };
    for (name, kind, hints, noted) in [
        (
            "bert-bge",
            VocabularyKind::Encoder,
            &[][..],
            &["`tokenizer.ggml.cls_token_id`", "eos_token_id", "normalizer.lowercase"][..],
        ),
        ("falcon", VocabularyKind::Bpe, &["falcon"], &[]),
        ("gpt-2", VocabularyKind::Bpe, &["gpt-2"], &[]),
        ("gpt-neox", VocabularyKind::Bpe, &["gpt-2"], &["`default`", "adds `tokenizer.ggml.pre`"]),
        ("llama-spm", VocabularyKind::Llama, &[], &[]),
        ("mpt", VocabularyKind::Bpe, &["mpt"], &[]),
        ("phi-3", VocabularyKind::Phi3, &[], &["`tokenizer.ggml.token_type`"]),
        ("qwen2", VocabularyKind::SentencePieceElseBpe, &["qwen2"], &[]),
        ("starcoder", VocabularyKind::Bpe, &["starcoder"], &[]),
    ] {
        let path = data.join(format!("vocab/ggml-vocab-{name}.gguf"));
        let model = Model::open(&path).unwrap();
        let rows = model.metadata().array("tokenizer.ggml.tokens").unwrap().len() as u64;
        let tokenizer = exported(model.metadata(), kind, hints, rows);
        assert_eq!(tokenizer.notes.len(), noted.len(), "{name}: {:?}", tokenizer.notes);
        for (note, part) in tokenizer.notes.iter().zip(noted) {
            assert!(note.contains(part), "{name}: {note}");
        }
    }
}
