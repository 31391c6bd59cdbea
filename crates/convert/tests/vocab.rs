//! Tokenizer files to metadata: against the official converter's output where reference data is
//! given, and small cases of our own that always run.

use std::fs;
use std::path::{Path, PathBuf};

use gguf::{Error, Metadata, Value as Gguf};
use gguf_convert::vocab::{Kind, Options, Vocabulary, load};
use serde_json::{Value, json};

/// The reference data, if there is any.
fn zoo() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA");
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA names no folder with reference data");
    }
    dir.map(|dir| Path::new(&dir).join("zoo"))
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A value as the manifests write it: its types, then its content.
fn as_manifest(value: &Gguf) -> (Vec<String>, Value) {
    let scalar = |value: &Gguf| match value {
        Gguf::Bool(v) => json!(v),
        Gguf::F32(v) => json!(f64::from(*v)),
        Gguf::String(_) => json!(value.as_str().unwrap()),
        _ => json!(value.to_i64().unwrap()),
    };
    let name = value.value_type().name().to_owned();
    match value.as_array() {
        None => (vec![name], scalar(value)),
        Some(array) => (
            vec![name, array.element_type().name().to_owned()],
            array.iter().map(|value| scalar(&value)).collect(),
        ),
    }
}

#[test]
fn equals_the_official_converter() {
    let Some(zoo) = zoo() else { return };
    // The names of the pre-tokenizers are those which the families prefer; the official
    // converter was told them, as it cannot know new vocabularies.
    for (folder, kind, hints) in [
        ("llama", Kind::Llama, &[][..]),
        ("mistral", Kind::Llama, &[]),
        ("mixtral", Kind::Llama, &[]),
        ("mixed-llama", Kind::Llama, &[]),
        ("gptq-llama", Kind::Llama, &[]),
        ("fp8-llama", Kind::Llama, &[]),
        ("phi3", Kind::SentencePieceElseBpe, &[]),
        ("qwen2", Kind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3", Kind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3moe", Kind::SentencePieceElseBpe, &["qwen2"]),
        ("gpt2", Kind::Bpe, &[]),
        ("gpt_neox", Kind::Bpe, &[]),
        ("mamba", Kind::Bpe, &[]),
        ("mpt", Kind::Bpe, &["mpt"]),
        ("bloom", Kind::Bpe, &[]),
        ("falcon", Kind::Bpe, &[]),
        ("stablelm", Kind::Bpe, &["stablelm2"]),
        ("olmo2", Kind::Bpe, &["dbrx"]),
    ] {
        let dir = zoo.join(folder);
        let vocab_size = read_json(&dir.join("config.json"))["vocab_size"].as_u64();
        let found = load(&dir, kind, &Options { pre: None, hints, vocab_size }).unwrap();
        let manifest = read_json(&dir.join("official.f32.manifest.json"));
        let wanted: Vec<_> = manifest["kv"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| key.starts_with("tokenizer."))
            .collect();
        let keys: Vec<_> = found.metadata.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, wanted.iter().map(|(key, _)| *key).collect::<Vec<_>>(), "{folder}");
        for ((key, value), (_, wanted)) in found.metadata.iter().zip(&wanted) {
            let (types, content) = as_manifest(value);
            assert_eq!(json!(types), wanted["type"], "{folder}: {key}");
            assert_eq!(content, wanted["value"], "{folder}: {key}");
        }
        assert_eq!(Some(found.len as u64), vocab_size, "{folder}");
    }
}

/// Without a hint a name is taken that cuts text alike.
#[test]
fn recognises_every_byte_level_structure() {
    let Some(zoo) = zoo() else { return };
    for (folder, pre) in [
        ("gpt2", "gpt-2"),
        ("gpt_neox", "gpt-2"),
        ("gptj", "gpt-2"),
        ("mamba", "gpt-2"),
        ("rwkv", "gpt-2"),
        ("whisper", "gpt-2"),
        ("mpt", "gpt-2"), // the same as `mpt` for runtimes
        ("qwen2", "qwen2"),
        ("qwen3", "qwen2"),
        ("qwen3moe", "qwen2"),
        ("stablelm", "qwen2"), // `stablelm2` differs in how text is cleaned when put together
        ("olmo2", "dbrx"),
        ("bloom", "bloom"),
        ("falcon", "falcon"),
    ] {
        let found = load(&zoo.join(folder), Kind::Bpe, &Options::default()).unwrap();
        assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some(pre), "{folder}");
    }
}

#[test]
fn space_prefix_key_comes_first() {
    let Some(zoo) = zoo() else { return };
    let dir = zoo.join("../tiny-kjv-llama/Tiny-KJV-Llama-4M");
    let options = Options { vocab_size: Some(2048), ..Options::default() };
    let found = load(&dir, Kind::Llama, &options).unwrap();
    let keys: Vec<_> = found.metadata.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "tokenizer.ggml.add_space_prefix",
            "tokenizer.ggml.model",
            "tokenizer.ggml.pre",
            "tokenizer.ggml.tokens",
            "tokenizer.ggml.scores",
            "tokenizer.ggml.token_type",
            "tokenizer.ggml.bos_token_id",
            "tokenizer.ggml.eos_token_id",
            "tokenizer.ggml.add_bos_token",
            "tokenizer.ggml.add_eos_token",
        ]
    );
    assert_eq!(found.len, 2048);
}

/// A checkpoint directory with these files.
fn checkpoint(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn convert(files: &[(&str, &[u8])], kind: Kind, options: &Options) -> Result<Vocabulary, Error> {
    load(checkpoint(files).path(), kind, options)
}

fn rows(vocab_size: u64) -> Options<'static> {
    Options { vocab_size: Some(vocab_size), ..Options::default() }
}

/// Texts and types of all tokens.
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

fn added(id: u64, content: &str, special: bool, normalized: bool) -> Value {
    json!({
        "id": id, "content": content, "special": special, "normalized": normalized,
        "lstrip": false, "rstrip": false, "single_word": false
    })
}

/// A byte-level tokenizer with ids up to 6, of which 3 is not used.
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

fn convert_bpe(tokenizer: &Value, options: &Options) -> Result<Vocabulary, Error> {
    convert(&[("tokenizer.json", tokenizer.to_string().as_bytes())], Kind::Bpe, options)
}

#[test]
fn byte_level_tokens_have_the_texts_and_types_of_the_official_converter() {
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
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b", "a \u{120}"]);
    assert_noted(&found, "1 merges name tokens");
    assert_eq!(found.metadata.bool("tokenizer.ggml.add_bos_token"), Some(false));
    // Without a configuration the tokens that are used give the size: not enough here.
    let fault = convert_bpe(&tiny_bpe(), &Options::default()).unwrap_err().to_string();
    assert!(fault.contains("token id 6 does not fit a vocabulary of 6"), "{fault}");
}

#[test]
fn tokens_that_only_the_configuration_names_get_the_next_ids() {
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
    let found = convert(&files, Kind::Bpe, &Options::default()).unwrap();
    let wanted = [("a", 3), ("b", 1), ("ab", 1), ("<|end|>", 3), ("new", 4), ("<pad>", 3)];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
}

#[test]
fn merges_come_from_text_if_json_has_none() {
    let mut tokenizer = tiny_bpe();
    tokenizer["model"]["merges"] = json!([]);
    let json = tokenizer.to_string();
    let files: [(&str, &[u8]); 2] =
        [("tokenizer.json", json.as_bytes()), ("merges.txt", b"#version\n\na b\nbad\n")];
    let found = convert(&files, Kind::Bpe, &rows(8)).unwrap();
    assert_eq!(strings(&found.metadata, "tokenizer.ggml.merges"), ["a b"]);
    assert_noted(&found, "left out line 4");
}

const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The tiny tokenizer with other pre-tokenizers.
fn with_steps(steps: Value) -> Value {
    let mut tokenizer = tiny_bpe();
    tokenizer["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
    tokenizer
}

fn with_split(regex: &str, behavior: &str, invert: bool) -> Value {
    with_steps(json!([
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    ]))
}

/// The name that is recognised, and the notes.
fn pre(tokenizer: &Value, hints: &[&str]) -> (String, String) {
    let options = Options { hints, ..rows(8) };
    let found = convert_bpe(tokenizer, &options).unwrap();
    (found.metadata.str("tokenizer.ggml.pre").unwrap().to_owned(), found.notes.join("\n"))
}

#[test]
fn hints_and_ignored_merges_choose_among_names_of_one_structure() {
    let mut llama = with_split(LLAMA3, "Isolated", false);
    assert_eq!(pre(&llama, &[]).0, "dbrx");
    assert_eq!(pre(&llama, &["llama-bpe", "smaug-bpe"]).0, "smaug-bpe");
    assert_eq!(pre(&llama, &["nothing", "chatglm-bpe"]).0, "chatglm-bpe");
    let (name, notes) = pre(&llama, &["llama-bpe"]);
    assert_eq!(name, "llama-bpe");
    assert!(notes.contains("take words that are tokens whole"), "{notes}");
    llama["model"]["ignore_merges"] = json!(true);
    let (name, notes) = pre(&llama, &[]);
    assert_eq!(name, "llama-bpe");
    assert!(notes.contains("the same for runtimes: llama3"), "{notes}");
    assert!(notes.contains("other defaults: dbrx, smaug-bpe, glm4"), "{notes}");
    assert_eq!(pre(&llama, &["llama-bpe", "smaug-bpe"]).0, "llama-bpe");

    let digits = with_steps(json!([
        {"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false},
    ]));
    assert_eq!(pre(&digits, &[]).0, "starcoder");
    assert_eq!(pre(&digits, &["smollm"]).0, "smollm");
}

#[test]
fn one_structure_is_recognised_in_several_spellings() {
    let expanded = LLAMA3.replace(
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    );
    for tokenizer in [
        with_split(LLAMA3, "Isolated", false),
        with_split(LLAMA3, "Removed", true),
        with_split(&expanded, "Isolated", false),
        with_split(&LLAMA3.replace(r"\r\n", "\r\n"), "Isolated", false),
    ] {
        assert_eq!(pre(&tokenizer, &[]).0, "dbrx");
    }
    let split = |pattern: Value, behavior| json!({"type": "Split", "pattern": pattern, "behavior": behavior, "invert": false});
    let regex = |text: &str| split(json!({"Regex": text}), "Isolated");
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
    // As DeepSeek V3 has it, with the line breaks themselves.
    let deepseek = with_steps(json!([
        regex(r"\p{N}{1,3}"),
        regex("[一-龥぀-ゟ゠-ヿ]+"),
        regex(concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
            "\r\n",
            r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
            "\r\n]*|\\s*[\r\n",
            r"]+|\s+(?!\S)|\s+"
        )),
        bytes,
    ]));
    assert_eq!(pre(&deepseek, &[]).0, "deepseek-v3");
    let nested = with_steps(json!([{"type": "Sequence", "pretokenizers": [regex(LLAMA3)]}, bytes]));
    assert_eq!(pre(&nested, &["dbrx"]).0, "dbrx");
    let mut gemma = with_steps(json!([split(json!({"String": " "}), "MergedWithPrevious")]));
    gemma["normalizer"] = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    assert_eq!(pre(&gemma, &[]).0, "gemma4");

    let mut normalized = tiny_bpe();
    normalized["normalizer"] = json!({"type": "Sequence", "normalizers": [{"type": "NFC"}]});
    let (name, notes) = pre(&normalized, &[]);
    assert_eq!(name, "gpt-2");
    assert!(notes.contains("normalizes text to NFC"), "{notes}");
}

#[test]
fn an_unknown_pre_tokenizer_names_its_steps_and_the_nearest() {
    let tokenizer = with_split(&LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}{1,2}"), "Isolated", false);
    let fault = convert_bpe(&tokenizer, &rows(8)).unwrap_err().to_string();
    assert!(fault.contains(r"\p{N}{1,2}"), "{fault}");
    assert!(fault.contains("--pre llama-bpe"), "{fault}");
    let found = convert_bpe(&tokenizer, &Options { pre: Some("dbrx"), ..rows(8) }).unwrap();
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("dbrx"));
    assert!(found.notes.iter().all(|n| !n.contains("does not know")), "{:?}", found.notes);
    let found = convert_bpe(&tokenizer, &Options { pre: Some("mine"), ..rows(8) }).unwrap();
    assert_noted(&found, "does not know");

    // A space in front of every piece is more than one in front of the text.
    let mut tokenizer = tiny_bpe();
    tokenizer["pre_tokenizer"]["add_prefix_space"] = json!(true);
    assert!(pre(&tokenizer, &[]).1.contains("puts a space in front of every text"));
    let tokenizer = with_steps(json!([
        {"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": true},
    ]));
    assert!(convert_bpe(&tokenizer, &rows(8)).is_err());
    // Here text that does not match would be lost.
    assert!(convert_bpe(&with_split(r"\p{N}+", "Removed", true), &rows(8)).is_err());
}

#[test]
fn special_tokens_follow_configuration_and_template() {
    let mut tokenizer = tiny_bpe();
    tokenizer["added_tokens"] =
        json!([added(3, "<s>", true, false), added(4, "</s>", true, false)]);
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>"}},
            {"Sequence": {"id": "A"}},
            {"SpecialToken": {"id": "</s>"}},
        ],
        "pair": []
    });
    let config = json!({
        "bos_token": {"content": "<s>"}, "eos_token": "b", "add_eos_token": false,
        "chat_template": [
            {"name": "default", "template": "D"},
            {"name": "tool use", "template": "T"},
            {"name": "", "template": "left out"},
        ]
    });
    let model = json!({
        "text_config": {"pad_token_id": 2}, "bos_token_id": 0, "eos_token_id": [1],
        "unk_token_id": -1
    });
    let tokenizer = tokenizer.to_string();
    let config = config.to_string();
    let model = model.to_string();
    let files: [(&str, &[u8]); 3] = [
        ("tokenizer.json", tokenizer.as_bytes()),
        ("tokenizer_config.json", config.as_bytes()),
        ("config.json", model.as_bytes()),
    ];
    let found = convert(&files, Kind::Bpe, &Options::default()).unwrap();
    let from_ids: Vec<_> = found.metadata.iter().skip(5).collect();
    assert_eq!(
        from_ids,
        [
            ("tokenizer.ggml.bos_token_id", &Gguf::U32(3)),
            ("tokenizer.ggml.eos_token_id", &Gguf::U32(4)),
            ("tokenizer.ggml.padding_token_id", &Gguf::U32(2)),
            ("tokenizer.ggml.add_bos_token", &Gguf::Bool(true)),
            ("tokenizer.ggml.add_eos_token", &Gguf::Bool(true)),
            ("tokenizer.chat_template.tool_use", &"T".into()),
            ("tokenizer.chat_templates", &gguf::Array::from_strings(["tool_use"]).into()),
            ("tokenizer.chat_template", &"D".into()),
        ]
    );
    assert_noted(&found, "add_eos_token is false");
    assert_noted(&found, "its id -1");
}

#[test]
fn chat_templates_are_found_beside_the_configuration() {
    let tokenizer = tiny_bpe().to_string();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("tokenizer.json", tokenizer.as_bytes()),
        ("chat_template.json", br#"{"chat_template": "from json"}"#),
    ];
    let template = |files: &[(&str, &[u8])], key: &str| {
        convert(files, Kind::Bpe, &rows(8)).unwrap().metadata.str(key).map(str::to_owned)
    };
    // Only a configuration makes the official converter look.
    assert_eq!(template(&files, "tokenizer.chat_template"), None);
    files.push(("tokenizer_config.json", br#"{"model_max_length": 1}"#));
    assert_eq!(template(&files, "tokenizer.chat_template").as_deref(), Some("from json"));
    files.push(("chat_template.jinja", b"a\r\nb"));
    files.push(("additional_chat_templates/rag.jinja", b"R"));
    assert_eq!(template(&files, "tokenizer.chat_template").as_deref(), Some("a\nb"));
    assert_eq!(template(&files, "tokenizer.chat_template.rag").as_deref(), Some("R"));
}

/// A number of a protocol buffer.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Bytes of a protocol buffer.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, value.len() as u8], value].concat()
}

fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
    let score = [&[2 << 3 | 5][..], &score.to_le_bytes()].concat();
    bytes(1, &[bytes(1, text.as_bytes()), score, number(3, kind)].concat())
}

/// Six pieces, one of each type, for a model that starts texts with a space.
fn tiny_sentencepiece() -> Vec<u8> {
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
fn sentencepiece_tokens_are_replaced_and_padded() {
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
    let found = convert(&files, Kind::SentencePieceElseBpe, &rows(8)).unwrap();
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

    // Without a size from the configuration the model's own counts; a smaller one cuts.
    let only = [("tokenizer.model", &model[..])];
    let found = convert(&only, Kind::Llama, &Options::default()).unwrap();
    assert_eq!(found.len, 6);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let found = convert(&only, Kind::Llama, &rows(4)).unwrap();
    assert_eq!(found.len, 4);
    assert_noted(&found, "has 6 tokens");
}

#[test]
fn sentencepiece_models_that_runtimes_will_not_follow_are_noted() {
    let pieces = piece("a", 0.0, 1);
    let noted = |model: Vec<u8>, part: &str| {
        let model = [&pieces[..], &model].concat();
        let found = convert(&[("tokenizer.model", &model)], Kind::Llama, &Options::default());
        assert_noted(&found.unwrap(), part);
    };
    noted(bytes(2, &number(3, 3)), "into words");
    noted(bytes(3, &number(3, 0)), "does not start texts with a space");
    noted(bytes(3, &number(4, 1)), "folds runs of spaces");
}

#[test]
fn broken_sentencepiece_models_are_refused_where_they_break() {
    let whole = tiny_sentencepiece();
    let fault = |bytes: &[u8]| {
        convert(&[("tokenizer.model", bytes)], Kind::Llama, &Options::default()).map(|_| ())
    };
    for end in 1..whole.len() {
        // Cut between fields, a model is only smaller; anything else is a fault and no panic.
        if let Err(fault) = fault(&whole[..end]) {
            assert!(fault.to_string().contains("at byte"), "{fault}");
        }
    }
    for (model, what) in [
        (vec![], "no pieces, at byte 0"),
        (b"not a model".to_vec(), "at byte"),
        (piece("x", 0.0, 9), "a piece of an unknown type"),
        (number(1, 1), "a number where a message belongs, at byte 0"),
        (bytes(1, &bytes(1, &[0xFF])), "a piece is not UTF-8, at byte 4"),
        (bytes(1, &number(1, 1)), "a piece with a value of the wrong type, at byte 2"),
        (vec![0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], "a value reaches past its end, at byte 6"),
    ] {
        let fault = fault(&model).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault}");
    }
}

#[test]
fn a_sentencepiece_vocabulary_in_json_keeps_the_order_of_ids() {
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
    // `[X]` is marked special, but has no role.
    let found = convert(&files, Kind::Llama, &Options::default()).unwrap();
    let wanted = [("<unk>", 3), ("<s>", 3), ("<0x0a>", 6), ("\u{2581}a", 1), ("[X]", 4)];
    assert_eq!(tokens(&found.metadata), owned(&wanted));
    assert_eq!(found.metadata.iter().next().unwrap().0, "tokenizer.ggml.add_space_prefix");
    assert_eq!(found.metadata.str("tokenizer.ggml.model"), Some("llama"));
}

#[test]
fn the_exceptions_of_the_llama_family() {
    let model = tiny_sentencepiece();
    let with =
        |size| convert(&[("tokenizer.model", &model)], Kind::Llama, &rows(size)).unwrap().metadata;
    assert_eq!(with(32016).u64("tokenizer.ggml.eot_token_id"), Some(32010));
    assert_eq!(with(49152).bool("tokenizer.ggml.add_bos_token"), Some(false));
    assert_eq!(with(32000).bool("tokenizer.ggml.add_bos_token"), None);
}

#[test]
fn missing_and_malformed_files_are_named() {
    let fault = |files: &[(&str, &[u8])], kind| {
        convert(files, kind, &Options::default()).unwrap_err().to_string()
    };
    for kind in [Kind::Llama, Kind::SentencePieceElseBpe, Kind::Bpe] {
        let fault = fault(&[], kind);
        assert!(fault.contains("looked for tokenizer.model, tokenizer.json"), "{fault}");
    }
    assert!(fault(&[("tekken.json", b"{}")], Kind::Llama).contains("tekken.json"));
    assert!(fault(&[("tokenizer_config.json", b"[]")], Kind::Bpe).contains("not a JSON object"));
    assert!(fault(&[("tokenizer.json", b"{")], Kind::Bpe).contains("not valid JSON"));

    let broken = |change: fn(&mut Value), what: &str| {
        let mut tokenizer = tiny_bpe();
        change(&mut tokenizer);
        let fault = convert_bpe(&tokenizer, &rows(8)).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault}");
    };
    broken(|t| t["model"]["vocab"] = json!([]), "model.vocab is missing");
    broken(|t| t["model"]["vocab"]["a"] = json!(-1), "the id of \"a\" is -1");
    broken(|t| t["model"]["vocab"]["a"] = json!(8), "token id 8 does not fit a vocabulary of 8");
    broken(|t| t["model"]["type"] = json!("WordPiece"), "needs BPE");
    broken(|t| t["model"]["merges"] = json!([["a"]]), "merge 0 is");
    broken(|t| t["added_tokens"][0] = json!({"id": 1}), "lacks id or content");

    let size = |fault: Error| assert!(fault.to_string().contains("vocab_size is"), "{fault}");
    size(convert_bpe(&tiny_bpe(), &rows(u64::MAX)).unwrap_err());
    let model = tiny_sentencepiece();
    size(convert(&[("tokenizer.model", &model)], Kind::Llama, &rows(u64::MAX)).unwrap_err());
}
