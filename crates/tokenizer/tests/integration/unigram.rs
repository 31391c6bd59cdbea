//! Unigram: best segmentation, white space, charsmaps, and corrupt vocabularies.

use std::time::{Duration, Instant};

use gguf::{Array, Metadata, Value};
use gguf_models::token::TokenType;
use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, Tokenizer, TokenizerOptions};

const BARE: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

/// Token types as numbered in files.
const UNKNOWN: i32 = TokenType::Unknown.id();
const CONTROL: i32 = TokenType::Control.id();
const UNUSED: i32 = TokenType::Unused.id();
const BYTE: i32 = TokenType::Byte.id();

/// Returns a vocabulary with `</s>` and `<unk>` before these tokens with score and type.
fn metadata(tokens: &[(&str, f32, i32)]) -> Metadata {
    let all = [("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN)];
    let all: Vec<_> = all.iter().chain(tokens).collect();
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "t5");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(all.iter().map(|token| token.0)));
    let scores: Vec<f32> = all.iter().map(|token| token.1).collect();
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
    let types: Vec<i32> = all.iter().map(|token| token.2).collect();
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    metadata.set("tokenizer.ggml.eos_token_id", 0u32);
    metadata.set("tokenizer.ggml.unknown_token_id", 1u32);
    metadata.set("tokenizer.ggml.add_space_prefix", true);
    metadata.set("tokenizer.ggml.remove_extra_whitespaces", true);
    metadata
}

fn tokenizer(metadata: &Metadata) -> Tokenizer {
    Tokenizer::from_metadata(metadata, TokenizerOptions::default()).unwrap()
}

const WORDS: [(&str, f32, i32); 6] = [
    ("\u{2581}", -3.0, 1),
    ("a", -3.5, 1),
    ("b", -4.0, 1),
    ("ab", -5.0, 1),
    ("\u{2581}a", -4.0, 1),
    ("abb", -1.0, UNUSED),
];

#[test]
fn largest_sum_of_scores_wins() {
    let tokenizer = tokenizer(&metadata(&WORDS));
    // "▁" and "ab" sum to -8.0, as "▁a" and "b" do: the first one found wins.
    assert_eq!(tokenizer.encode("ab", BARE), [2, 5]);
    assert_eq!(tokenizer.encode("aab", BARE), [6, 5]);
    assert_eq!(tokenizer.encode("ab", EncodeOptions::default()), [2, 5, 0]);
    // Unused tokens do not match.
    assert_eq!(tokenizer.encode("abb", BARE), [2, 5, 4]);
    // Consecutive unknown characters are one token.
    assert_eq!(tokenizer.encode("a?!b", BARE), [6, 1, 4]);
}

#[test]
fn white_space_follows_the_flags() {
    let merging = tokenizer(&metadata(&WORDS));
    assert_eq!(merging.encode("  a   a ", BARE), [6, 6]);
    assert!(merging.encode("   ", BARE).is_empty());
    assert_eq!(merging.decode(&[6, 6, 4], DecodeOptions::default()), b"a ab");

    let mut keeping = metadata(&WORDS);
    keeping.set("tokenizer.ggml.model", "replit");
    keeping.remove("tokenizer.ggml.add_space_prefix");
    keeping.remove("tokenizer.ggml.remove_extra_whitespaces");
    let keeping = tokenizer(&keeping);
    assert_eq!(keeping.encode("a  a ", BARE), [3, 2, 6, 2]);
    assert_eq!(keeping.decode(&[3, 2, 6, 2], DecodeOptions::default()), b"a  a ");

    let mut after = metadata(&WORDS);
    after.set("tokenizer.ggml.treat_whitespace_as_suffix", true);
    assert_eq!(tokenizer(&after).encode("b", BARE), [4, 2]);
}

#[test]
fn byte_fallback() {
    let names: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let bytes = names.iter().map(|name| (name.as_str(), 0.0, BYTE));
    let all: Vec<_> = WORDS.into_iter().chain(bytes).collect();
    let tokenizer = tokenizer(&metadata(&all));
    let ids = tokenizer.encode("aé", BARE);
    assert_eq!(ids, [6, 8 + 0xc3, 8 + 0xa9]);
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), "aé".as_bytes());
}

/// Builds a charsmap with these replacements; each node has 256 slots for its children.
fn charsmap(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut nodes: Vec<u32> = vec![0; 256];
    let mut texts = Vec::new();
    let base = |nodes: &mut Vec<u32>, node: usize| {
        if nodes[node] >> 10 == 0 {
            nodes[node] |= ((node ^ nodes.len()) as u32) << 10;
            nodes.resize(nodes.len() + 256, 0);
        }
        node ^ (nodes[node] >> 10) as usize
    };
    for (key, replacement) in entries {
        let mut node = 0;
        for byte in key.bytes() {
            node = base(&mut nodes, node) ^ usize::from(byte);
            nodes[node] |= u32::from(byte);
        }
        let value = base(&mut nodes, node);
        nodes[node] |= 1 << 8;
        nodes[value] = 1 << 31 | texts.len() as u32;
        texts.extend_from_slice(replacement.as_bytes());
        texts.push(0);
    }
    let mut bytes = (nodes.len() as u32 * 4).to_le_bytes().to_vec();
    bytes.extend(nodes.iter().flat_map(|node| node.to_le_bytes()));
    bytes.extend(texts);
    bytes
}

fn with_charsmap(bytes: &[u8]) -> Metadata {
    let mut metadata = metadata(&WORDS);
    metadata.set("tokenizer.ggml.precompiled_charsmap", Array::from(bytes));
    metadata
}

#[test]
fn longest_replacement_wins() {
    let map = charsmap(&[("A", "a"), ("A\u{301}", "b"), ("\t", " "), ("x", "")]);
    let tokenizer = tokenizer(&with_charsmap(&map));
    assert_eq!(tokenizer.encode("AxA\u{301}\t\tA", BARE), [2, 5, 6]);
    // A prefix of a key is not a key, and NUL never matches.
    assert_eq!(tokenizer.encode("a\u{300}", BARE), [6, 1]);
    assert_eq!(tokenizer.encode("\0A", BARE), [2, 1, 3]);
}

#[test]
fn corrupt_charsmaps_are_refused_or_harmless() {
    let sound = charsmap(&[("A", "a"), ("é", "b")]);
    let fault = |metadata: &Metadata| {
        Tokenizer::from_metadata(metadata, TokenizerOptions::default()).err().map(|e| e.to_string())
    };
    assert_eq!(fault(&with_charsmap(&sound)), None);
    for len in 1..sound.len() {
        assert!(fault(&with_charsmap(&sound[..len])).is_some(), "{len} bytes");
    }
    // Any corruption may cause only an error or other ids.
    let places = (0..64).chain(1024..1400).chain(sound.len() - 8..sound.len());
    for place in places {
        for bit in 0..8 {
            let mut damaged = sound.clone();
            damaged[place] ^= 1 << bit;
            let read =
                Tokenizer::from_metadata(&with_charsmap(&damaged), TokenizerOptions::default());
            if let Ok(tokenizer) = read {
                tokenizer.encode("A é Aé\0A \u{10ffff} ãb", BARE);
            }
        }
    }
    let mut text = metadata(&WORDS);
    text.set("tokenizer.ggml.precompiled_charsmap", Array::from_strings(["A"]));
    assert!(fault(&text).unwrap().contains("not an array of bytes"));
}

#[test]
fn invalid_vocabularies_are_refused() {
    let fault = |key: &'static str, value: Value| {
        let mut metadata = metadata(&WORDS);
        metadata.set(key, value);
        let error = Tokenizer::from_metadata(&metadata, TokenizerOptions::default()).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let scores = "tokenizer.ggml.scores";
    assert!(fault(scores, Array::from(&[0f32][..]).into()).contains("1 elements for 8 tokens"));
    assert!(fault(scores, Array::from(&[f32::NAN; 8][..]).into()).contains("scores"));
    assert!(fault("tokenizer.ggml.unknown_token_id", 8u32.into()).contains("outside"));
    assert!(fault("tokenizer.ggml.tokens", 1u32.into()).contains("not an array"));
    let long = "a".repeat(1_000_000);
    let error =
        Tokenizer::from_metadata(&metadata(&[(&long, 0.0, 1)]), TokenizerOptions::default()).err();
    assert!(error.unwrap().to_string().contains("1000000 bytes"));
    // Infinite scores must not hang the search.
    for score in [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
        let odd = metadata(&[("a", score, 1), ("aa", score, 1), ("", score, 1), ("a", score, 1)]);
        for compat in [Compat::Original, Compat::LlamaCpp] {
            let tokenizer = Tokenizer::from_metadata(
                &odd,
                TokenizerOptions { compat, ..TokenizerOptions::default() },
            );
            assert!(!tokenizer.unwrap().encode("aaa aaa", BARE).is_empty());
        }
    }
}

/// The limit is generous, as machines differ; quadratic time would take hours.
#[test]
fn long_words_take_linear_time() {
    let runs: Vec<String> = (1..=8).map(|len| "a".repeat(len)).collect();
    let tokens: Vec<_> = runs.iter().map(|run| (run.as_str(), -1.0, 1)).collect();
    let tokenizer = tokenizer(&metadata(&tokens));
    let start = Instant::now();
    assert_eq!(tokenizer.encode(&"a".repeat(1 << 20), BARE).len(), 1 + (1 << 17));
    assert_eq!(tokenizer.encode(&"?".repeat(1 << 20), BARE), [1]);
    assert!(tokenizer.encode(&" ".repeat(1 << 20), BARE).is_empty());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
