//! RWKV World: greedy longest match, from both forms of the vocabulary.

use std::time::{Duration, Instant};

use gguf::{Array, Metadata};
use gguf_tokenizer::{DecodeOptions, EncodeOptions, Tokenizer, TokenizerOptions};

const BARE: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn tokenizer(metadata: &Metadata) -> Result<Tokenizer, String> {
    Tokenizer::from_metadata(metadata, TokenizerOptions::default())
        .map_err(|error| error.to_string())
}

/// Returns a vocabulary as converters write it.
fn escaped(tokens: &[&str]) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "rwkv");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    metadata
}

/// Returns a vocabulary in its published form.
fn world(text: &str) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.rwkv.world", text.to_owned());
    metadata
}

#[test]
fn both_vocabulary_forms_agree() {
    let tokens =
        ["", r"\n", "a", "ab", "abcd", r"\xe4\xbd", r"\xa0", "'", r"\\", r"\xe4\xbd\xa0\xe5"];
    let lines = "1 '\\n' 1\n2 'a' 1\n3 'ab' 2\n4 'abcd' 4\n5 b'\\xe4\\xbd' 2\n6 b'\\xa0' 1\n\
                 7 \"'\" 1\n8 '\\\\' 1\n9 b'\\xe4\\xbd\\xa0\\xe5' 4\n";
    for metadata in [escaped(&tokens), world(lines)] {
        let tokenizer = tokenizer(&metadata).unwrap();
        assert_eq!(tokenizer.len(), 10);
        assert_eq!(tokenizer.encode("abcdabca", BARE), [4, 3, 2]);
        assert_eq!(tokenizer.encode("你\n'\\", BARE), [5, 6, 1, 7, 8]);
        assert_eq!(
            tokenizer.decode(&[5, 6, 1, 7, 8, 0, 77], DecodeOptions::default()),
            "你\n'\\".as_bytes()
        );
    }
}

#[test]
fn control_tokens_do_not_match_text() {
    let mut metadata = escaped(&["<s>", "<", "s", ">"]);
    metadata.set("tokenizer.ggml.token_type", Array::from(&[3i32, 1, 1, 1][..]));
    let tokenizer = tokenizer(&metadata).unwrap();
    assert_eq!(tokenizer.encode("<s>", BARE), [1, 2, 3]);
    assert_eq!(tokenizer.encode("<s>", EncodeOptions::default()), [0]);
}

#[test]
fn invalid_vocabularies_are_refused() {
    let faults = [
        ("1 'a'", "line 1 is not an id"),
        ("1 'a' 1\nx 'b' 1", "line 2 is not an id"),
        ("1 'a' 2", "1 bytes, but states 2"),
        ("1 a 1", "no valid literal"),
        ("1 b'\\x4' 1", "no valid literal"),
        ("4000000000 'a' 1", "too large"),
        ("1 'a' 99999999999999999999", "is not an id"),
    ];
    for (text, expected) in faults {
        let error = tokenizer(&world(text)).err().unwrap();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let long = format!("1 '{}' 1000000", "a".repeat(1_000_000));
    assert!(tokenizer(&world(&long)).err().unwrap().contains("1000000 bytes"));
    assert!(tokenizer(&world("")).unwrap().encode("a", BARE).is_empty());
}

/// The limit is generous, as machines differ; quadratic time would take hours.
#[test]
fn long_words_take_linear_time() {
    let long = format!("{}b", "a".repeat(60));
    let tokenizer = tokenizer(&escaped(&["", "a", "aa", &long])).unwrap();
    let start = Instant::now();
    assert_eq!(tokenizer.encode(&"a".repeat(1 << 20), BARE).len(), 1 << 19);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
