//! WordPiece: ids and texts of a small vocabulary, of BERT's vocabulary, and of a `tokenizer.json`.

use std::fs;
use std::time::{Duration, Instant};

use gguf::{Array, Gguf, Metadata};
use gguf_store::LocalFile;
use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::Value as Json;

use crate::support;

const BARE: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

/// Returns a vocabulary of these tokens, as in `vocab.txt`; those in brackets are control tokens.
fn metadata(tokens: &[&str]) -> Metadata {
    let is_control = |token: &&str| token.starts_with('[') && token.ends_with(']');
    let texts = tokens.iter().map(|token| match token.strip_prefix("##") {
        _ if is_control(token) => (*token).to_owned(),
        Some(rest) => rest.to_owned(),
        None => format!("\u{2581}{token}"),
    });
    let types: Vec<i32> =
        tokens.iter().map(|token| if is_control(token) { 3 } else { 1 }).collect();
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "bert");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(texts));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    for (role, token) in [("unknown", "[UNK]"), ("bos", "[CLS]"), ("seperator", "[SEP]")] {
        if let Some(id) = tokens.iter().position(|t| *t == token) {
            metadata.set(format!("tokenizer.ggml.{role}_token_id"), id as u32);
        }
    }
    metadata
}

fn tokenizer(tokens: &[&str], options: TokenizerOptions) -> Tokenizer {
    Tokenizer::from_metadata(&metadata(tokens), options).unwrap()
}

#[test]
fn longest_tokens_match_from_the_start() {
    let tokens =
        ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "aff", ".", "un##", "\u{2581}"];
    let tokenizer = tokenizer(&tokens, TokenizerOptions::default());
    assert_eq!(tokenizer.encode("UNAFFABLE. aff", EncodeOptions::default()), [1, 3, 4, 5, 8, 7, 2]);
    // No token begins a word with "able", and none continues one with "un".
    assert_eq!(tokenizer.encode("able affun un", BARE), [0, 0, 3]);
    assert_eq!(tokenizer.encode("[CLS]", BARE), [0, 0, 0]);
    assert!(tokenizer.encode(" \n", BARE).is_empty());
    let text = tokenizer.decode(&[1, 3, 4, 5, 8, 7, 2], DecodeOptions::default());
    assert_eq!(String::from_utf8_lossy(&text), "unaffable. aff");
}

#[test]
fn words_longer_than_100_characters_are_unknown() {
    let tokens = ["[UNK]", "é", "##é"];
    let mut metadata = metadata(&tokens);
    metadata.set("tokenizer.ggml.normalizer.strip_accents", false);
    let count = |compat, len: usize| {
        let tokenizer = Tokenizer::from_metadata(
            &metadata,
            TokenizerOptions { compat, ..TokenizerOptions::default() },
        );
        tokenizer.unwrap().encode(&"é".repeat(len), BARE).len()
    };
    assert_eq!((count(Compat::Original, 100), count(Compat::Original, 101)), (100, 1));
    assert_eq!(count(Compat::LlamaCpp, 101), 101);
}

/// Ids of llama.cpp (llama-cpp-python 0.3.36) for cases in which it differs.
///
#[test]
fn normalization_matches_llama_cpp() {
    let tokens = [
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "a",
        "##b",
        "i",
        "##ı",
        "\u{1100}",
        "$",
        "^",
        "x",
        "##x",
        "#\u{2581}",
        "##\u{2581}",
        "\u{303}",
        "##\u{903}",
        "e",
        "##e",
        "İ",
        "€",
        "##€",
        "\u{f93d}",
        "\u{7dd1}",
        "\u{a7da}",
        "\u{a7db}",
        "##\u{1c89}",
        "##\u{378}",
        "+",
        "ẞ",
        "ß",
        "##fg",
        "##y",
        "##\u{a7da}",
        "##\u{a7d4}",
        "##é",
        "é",
        "##ﬁ",
    ];
    let cases: [(&str, &[u32], &[u32]); 21] = [
        // White space that BERT removes.
        ("a\u{85}a\u{c}ca", &[3, 3, 0], &[3, 3, 0]),
        // Only the first character of a decomposition.
        ("\u{ac01}", &[7], &[0]),
        ("aé", &[3, 17], &[3, 34]),
        ("\u{f93d}\u{f93d}", &[0, 0], &[21, 21]),
        // Marks of all kinds are stripped.
        ("a\u{903}b", &[3, 4], &[3, 15, 4]),
        ("a\u{20dd}b", &[3, 4], &[0]),
        ("\u{903}", &[], &[13, 15]),
        // Lower case maps one character to one.
        ("İ", &[5], &[5]),
        ("ẞ", &[29], &[29]),
        // Characters that Unicode 15.1 does not have are text, and keep their case.
        ("a\u{378}", &[3, 26], &[3, 26]),
        ("A\u{a7da}", &[3, 32], &[3, 32]),
        ("a\u{1c89}", &[3, 25], &[3, 25]),
        ("a\u{1b4e}b", &[0], &[0]),
        // Symbols are punctuation only within ASCII.
        ("a€", &[3, 20], &[3, 20]),
        ("a$a", &[3, 8, 3], &[3, 8, 3]),
        // Removed: private use, format characters, NUL.
        ("a\u{e000}b", &[3, 4], &[3, 4]),
        ("a\u{0}b\u{fffd}", &[3, 4], &[3, 4]),
        // With a token U+2581, a continuation can begin a word.
        ("fg", &[13, 30], &[13, 30]),
        ("xfg", &[10, 30], &[10, 30]),
        // U+2581 in the text begins a word within a word.
        ("a\u{2581}a", &[3, 3], &[3, 3]),
        ("\u{2581}", &[13, 13], &[13, 13]),
    ];
    let mut metadata = metadata(&tokens);
    let options = TokenizerOptions { compat: Compat::LlamaCpp, ..TokenizerOptions::default() };
    let stripped = Tokenizer::from_metadata(&metadata, options).unwrap();
    metadata.set("tokenizer.ggml.normalizer.strip_accents", false);
    let accented = Tokenizer::from_metadata(&metadata, options).unwrap();
    for (text, without, with) in cases {
        assert_eq!(stripped.encode(text, BARE), without, "{text:?}");
        assert_eq!(accented.encode(text, BARE), with, "{text:?} with accents");
    }
}

/// The limit is generous, as machines differ; quadratic time would take hours.
#[test]
fn long_words_take_linear_time() {
    let tokens = ["[UNK]", "a", "##a", "##aa", "##aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"];
    let text = "a".repeat(1 << 20);
    let start = Instant::now();
    for compat in [Compat::Original, Compat::LlamaCpp] {
        tokenizer(&tokens, TokenizerOptions { compat, ..TokenizerOptions::default() })
            .encode(&text, BARE);
        let marks = format!("a{}", "\u{302e}".repeat(1 << 19));
        tokenizer(&tokens, TokenizerOptions { compat, ..TokenizerOptions::default() })
            .encode(&marks, BARE);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn invalid_vocabularies_are_refused() {
    let fault = |tokens: &[&str], key: &'static str, value: gguf::Value| {
        let mut metadata = metadata(tokens);
        metadata.set(key, value);
        Tokenizer::from_metadata(&metadata, TokenizerOptions::default())
            .err()
            .map(|e| e.to_string())
    };
    let long = "a".repeat(1_000_000);
    let none = || gguf::Value::from(0u32);
    assert!(fault(&["[UNK]", &long], "x", none()).unwrap().contains("1000000 bytes"));
    let id = "tokenizer.ggml.unknown_token_id";
    assert!(fault(&["a"], id, 7u32.into()).unwrap().contains("outside"));
    // Empty tokens never match, and of equal tokens the last one counts.
    assert_eq!(fault(&["", "a", "a"], "x", none()), None);
    // Without an unknown token, unknown words are skipped.
    assert_eq!(tokenizer(&["a"], TokenizerOptions::default()).encode("a b a", BARE), [0, 0]);
}

#[test]
fn bge_matches_llama_cpp() {
    let Some(path) = support::reference("vocab/ggml-vocab-bert-bge.gguf") else { return };
    let read = |end: &str| fs::read_to_string(path.with_extension(format!("gguf.{end}"))).unwrap();
    let map = LocalFile::open(&path).unwrap();
    let gguf = Gguf::read(map.mapped()).unwrap();
    let tokenizer = Tokenizer::from_metadata(gguf.metadata(), TokenizerOptions::default()).unwrap();
    let (inputs, outputs) = (read("inp"), read("out"));
    let inputs: Vec<_> = inputs.split("\n__ggml_vocab_test__\n").collect();
    let outputs: Vec<_> = outputs.lines().collect();
    // A separator follows the last input too.
    assert_eq!(inputs.len(), outputs.len() + 1);
    for (input, output) in inputs.iter().zip(outputs) {
        let expected: Vec<u32> = output.split_whitespace().map(|id| id.parse().unwrap()).collect();
        assert_eq!(tokenizer.encode(input, BARE), expected, "{input:?}");
    }
}

#[test]
fn zoo_matches_its_tokenizer_json() {
    let Some(path) = support::reference("zoo/bert") else { return };
    let json =
        |name| -> Json { serde_json::from_slice(&fs::read(path.join(name)).unwrap()).unwrap() };
    let file = json("tokenizer.json");
    let vocab = file["model"]["vocab"].as_object().unwrap();
    let mut tokens = vec![""; vocab.len()];
    vocab.iter().for_each(|(token, id)| tokens[id.as_u64().unwrap() as usize] = token);
    let tokenizer = tokenizer(&tokens, TokenizerOptions::default());
    for case in json("tokenizer_cases.json")["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ids = |key: &str| -> Vec<u32> {
            case[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
        };
        let special = EncodeOptions::default();
        let bare = EncodeOptions { add_special: false, ..special };
        assert_eq!(tokenizer.encode(text, bare), ids("ids"), "{text:?}");
        assert_eq!(tokenizer.encode(text, special), ids("ids_with_special"), "{text:?}");
        // Special tokens, including the unknown token, are skipped here.
        let expected = case["decoded"].as_str().unwrap();
        if !expected.contains('[') {
            let decoded = tokenizer.decode(&ids("ids"), DecodeOptions::default());
            assert_eq!(String::from_utf8_lossy(&decoded), expected);
        }
    }
}
