//! Small vocabularies: their encodings, and errors for invalid ones.

use std::time::{Duration, Instant};

use gguf::{Array, Metadata};
use gguf_models::token::{TokenType, char_of};
use gguf_tokenizer::{Compat, DecodeOptions, Decoder, EncodeOptions, Tokenizer, TokenizerOptions};

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };
const NORMAL: i32 = TokenType::Normal.id();
const CONTROL: i32 = TokenType::Control.id();
const USER_DEFINED: i32 = TokenType::UserDefined.id();
const BYTE: i32 = TokenType::Byte.id();

fn metadata(model: &str, tokens: &[(&str, f32, i32)]) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", model.to_owned());
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens.iter().map(|t| t.0)));
    let scores: Vec<f32> = tokens.iter().map(|t| t.1).collect();
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
    let types: Vec<i32> = tokens.iter().map(|t| t.2).collect();
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    metadata
}

/// Returns a SentencePiece vocabulary with byte tokens for é only.
fn sentencepiece() -> Metadata {
    metadata(
        "llama",
        &[
            ("<unk>", 0.0, 2),
            ("<s>", 0.0, CONTROL),
            ("</s>", 0.0, CONTROL),
            ("<0xC3>", 0.0, BYTE),
            ("<0xA9>", 0.0, BYTE),
            ("▁", -9.0, NORMAL),
            ("a", -8.0, NORMAL),
            ("b", -7.0, NORMAL),
            ("ab", -2.0, NORMAL),
            ("▁a", -3.0, NORMAL),
            ("ba", -2.0, NORMAL),
            ("<x>", 0.0, USER_DEFINED),
        ],
    )
}

/// Returns a byte-level vocabulary with every byte and a few merges.
fn byte_level(pre: &str) -> Metadata {
    let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
    tokens.extend(["he", "ll", "hell", "Ġhe", "llo", "Ġhello"].map(str::to_owned));
    tokens.push("<|end|>".to_owned());
    let mut types = vec![NORMAL; tokens.len()];
    types[262] = CONTROL;
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", pre.to_owned());
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    let merges = ["h e", "l l", "he ll", "Ġ he", "ll o", "Ġhe llo"];
    metadata.set("tokenizer.ggml.merges", Array::from_strings(merges));
    metadata
}

fn read(metadata: &Metadata) -> Tokenizer {
    Tokenizer::from_metadata(metadata, TokenizerOptions::default()).unwrap()
}

/// `tokenizers` drops a byte without a token before merging, llama.cpp after.
#[test]
fn bytes_without_a_token_are_dropped_before_merging() {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "gpt-2");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(["a", "b", "ab"]));
    metadata.set("tokenizer.ggml.merges", Array::from_strings(["a b"]));
    for (compat, expected) in [(Compat::Original, &[2, 2][..]), (Compat::LlamaCpp, &[2, 0, 1])] {
        let options = TokenizerOptions { compat, ..TokenizerOptions::default() };
        let tokenizer = Tokenizer::from_metadata(&metadata, options).unwrap();
        assert_eq!(tokenizer.encode("abaxb", EncodeOptions::default()), expected, "{compat:?}");
        assert_eq!(tokenizer.encode("x", EncodeOptions::default()), [] as [u32; 0]);
    }
}

#[test]
fn best_score_merges_first() {
    let tokenizer = read(&sentencepiece());
    let ids = |text| tokenizer.encode(text, PLAIN);
    assert_eq!(ids("ab"), [5, 8]);
    assert_eq!(ids("aba"), [5, 8, 6]);
    assert_eq!(ids("bab"), [5, 10, 7]);
    assert_eq!(ids("a a"), [9, 9]);
    assert_eq!(ids("é"), [5, 3, 4]);
    // Consecutive unknown characters are one unknown token.
    assert_eq!(ids("xyé"), [5, 0, 3, 4]);
    assert_eq!(ids(""), [0u32; 0]);
    assert_eq!(tokenizer.encode("ab", EncodeOptions::default()), [1, 5, 8]);
}

#[test]
fn special_tokens_are_matched_first() {
    let tokenizer = read(&sentencepiece());
    let parsed = EncodeOptions { add_special: false, parse_special: true };
    assert_eq!(tokenizer.encode("a</s>b", parsed), [9, 2, 5, 7]);
    assert_eq!(tokenizer.encode("a<x>b", PLAIN), [9, 11, 5, 7]);
    assert_eq!(tokenizer.encode("</s>", PLAIN).iter().filter(|id| **id == 2).count(), 0);
    assert_eq!(tokenizer.decode(&[1, 9, 2, 9, 99], DecodeOptions::default()), b"a a");
    assert_eq!(tokenizer.decode(&[1, 9, 2], DecodeOptions { special: true }), b"<s> a</s>");
}

#[test]
fn merges_follow_their_rank() {
    let tokenizer = read(&byte_level("gpt-2"));
    // `hell` merges before `llo`.
    assert_eq!(tokenizer.encode("hello", PLAIN), [258, 111]);
    // A word that is a token still goes through the merges, unless the model ignores them.
    assert_eq!(tokenizer.encode(" hello", PLAIN), [32, 258, 111]);
    assert_eq!(read(&byte_level("llama-bpe")).encode(" hello", PLAIN), [261]);
    assert_eq!(tokenizer.encode("<|end|>", EncodeOptions::default()), [262]);
    assert_eq!(tokenizer.encode("<|end|>", PLAIN).len(), 7);
    assert_eq!(tokenizer.token_bytes(261).unwrap(), b" hello");
    assert_eq!(tokenizer.token_text(261).unwrap(), "Ġhello".as_bytes());
}

#[test]
fn normalization_follows_the_model_or_llama_cpp() {
    let metadata = byte_level("qwen2");
    let encode = |compat, normalize| {
        let options = TokenizerOptions { compat, normalize };
        let tokenizer = Tokenizer::from_metadata(&metadata, options).unwrap();
        tokenizer.encode("e\u{301}", PLAIN)
    };
    assert_eq!(encode(Compat::Original, None), [0xc3, 0xa9]);
    assert_eq!(encode(Compat::Original, Some(false)), [0x65, 0xcc, 0x81]);
    assert_eq!(encode(Compat::LlamaCpp, None), [0x65, 0xcc, 0x81]);
}

#[test]
fn decoder_returns_complete_characters() {
    let tokenizer = read(&byte_level("gpt-2"));
    let mut decoder = Decoder::new(&tokenizer, DecodeOptions::default());
    let texts: Vec<String> =
        [0x68, 0xf0, 0x9f, 0x98, 0x80, 0xff, 0xc3].map(|id| decoder.push(id)).into();
    assert_eq!(texts, ["h", "", "", "", "😀", "\u{fffd}", ""]);
    assert_eq!(decoder.push(0x68), "\u{fffd}h");
    assert_eq!(decoder.push(0xc3), "");
    assert_eq!(decoder.finish(), "\u{fffd}");
}

#[test]
fn batches_match_single_texts() {
    let tokenizer = read(&byte_level("gpt-2"));
    let texts: Vec<String> = (0..200).map(|n| format!("hello {n} hell").repeat(n % 7)).collect();
    let single: Vec<Vec<u32>> = texts.iter().map(|text| tokenizer.encode(text, PLAIN)).collect();
    assert_eq!(tokenizer.encode_batch(&texts, PLAIN), single);
}

fn refused(metadata: &Metadata) -> (String, String) {
    let error = Tokenizer::from_metadata(metadata, TokenizerOptions::default()).err().unwrap();
    assert_eq!(error.fault(), gguf::Fault::Input);
    let finding = error.finding().unwrap();
    (finding.key.as_deref().unwrap().to_owned(), finding.message.to_string())
}

#[test]
fn invalid_keys_are_refused() {
    let with = |key: &str, value: gguf::Value| {
        let mut metadata = byte_level("gpt-2");
        metadata.set(key.to_owned(), value);
        refused(&metadata)
    };
    let strings = |strings: &[&str]| gguf::Value::Array(Array::from_strings(strings));
    let types = Array::from(&[1i32; 262][..]);
    let cases = [
        (with("tokenizer.ggml.model", "magic".into()), "tokenizer.ggml.model", "magic"),
        (with("tokenizer.ggml.pre", "gpt-3".into()), "tokenizer.ggml.pre", "gpt-3"),
        (with("tokenizer.ggml.tokens", 3u32.into()), "tokenizer.ggml.tokens", "not an array"),
        (
            with("tokenizer.ggml.token_type", gguf::Value::Array(types)),
            "tokenizer.ggml.token_type",
            "262 elements for 263 tokens",
        ),
        (
            with("tokenizer.ggml.bos_token_id", 263u32.into()),
            "tokenizer.ggml.bos_token_id",
            "token 263 is outside",
        ),
        (
            with("tokenizer.ggml.merges", strings(&["h e", "q u"])),
            "tokenizer.ggml.merges",
            "merge 1",
        ),
        (with("tokenizer.ggml.merges", strings(&["he"])), "tokenizer.ggml.merges", "not a pair"),
    ];
    for ((key, fault), expected_key, part) in cases {
        assert!(key == expected_key && fault.contains(part), "{key}: {fault}");
    }
    let mut metadata = byte_level("gpt-2");
    metadata.remove("tokenizer.ggml.merges");
    assert_eq!(refused(&metadata).1, "is missing");
    let mut metadata = sentencepiece();
    metadata.set("tokenizer.ggml.scores", Array::from(&[f32::NAN; 12][..]));
    assert_eq!(refused(&metadata).0, "tokenizer.ggml.scores");
}

/// Empty tokens, equal tokens, and a token of a million characters are accepted.
#[test]
fn unusual_tokens_are_accepted() {
    let long = "b".repeat(1 << 20);
    let tokens =
        [("", 0.0, USER_DEFINED), ("", 0.0, NORMAL), (&long, -1.0, NORMAL), ("a", -2.0, NORMAL)];
    let mut metadata = metadata("llama", &[&tokens[..], &tokens[..]].concat());
    metadata.set("tokenizer.ggml.add_bos_token", false);
    metadata.set("tokenizer.ggml.add_space_prefix", false);
    let tokenizer = read(&metadata);
    assert_eq!(tokenizer.encode("aa", EncodeOptions::default()), [3, 3]);
    assert_eq!(tokenizer.decode(&[0, 1, 3], DecodeOptions::default()), b"a");
}

/// A quarter of a million repetitions, with and without merges.
#[test]
fn long_words_take_linear_time() {
    let tokens: Vec<(String, f32, i32)> = (0..10)
        .map(|n| ("a".repeat(1 << n), n as f32 - 20.0, NORMAL))
        .chain([("▁".to_owned(), -30.0, NORMAL)])
        .collect();
    let tokens: Vec<_> =
        tokens.iter().map(|(text, score, kind)| (&**text, *score, *kind)).collect();
    let scored = read(&metadata("llama", &tokens));
    let merged = read(&byte_level("gpt-2"));
    let start = Instant::now();
    for text in ["a", " ", "hell", "l", "中"] {
        let text = text.repeat(1 << 18);
        scored.encode(&text, EncodeOptions::default());
        merged.encode(&text, EncodeOptions::default());
    }
    // Some seconds in an unoptimized test; quadratic time would take hours.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// The ids are those of `encode`, and the merges lead from the symbols to them in order of rank.
#[test]
fn traces_list_merges_in_order() {
    let byte_level = || {
        let tokens = ["h", "e", "l", "o", "Ġ", "he", "ll", "hell", "hello", "Ġh", "<x>"];
        let rows: Vec<_> = tokens.iter().map(|token| (*token, 0.0, NORMAL)).collect();
        let mut metadata = metadata("gpt2", &rows);
        let mut types = [NORMAL; 11];
        types[10] = CONTROL;
        metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
        let merges = ["h e", "l l", "he ll", "hell o", "Ġ h"];
        metadata.set("tokenizer.ggml.merges", Array::from_strings(merges));
        metadata.set("tokenizer.ggml.pre", "gpt-2");
        metadata
    };
    let tokenizer = Tokenizer::from_metadata(&byte_level(), TokenizerOptions::default()).unwrap();
    let how = EncodeOptions { add_special: false, parse_special: true };
    let trace = tokenizer.trace("hello<x> he", how);
    assert_eq!(trace.ids, tokenizer.encode("hello<x> he", how));
    let pieces: Vec<_> = trace.pieces.iter().map(|piece| (&*piece.text, piece.special)).collect();
    assert_eq!(pieces, [("hello", false), ("<x>", true), (" he", false)]);
    let words = trace.pieces[0].words.as_ref().unwrap();
    let merges: Vec<_> = words[0]
        .merges
        .iter()
        .map(|merge| (merge.at, merge.rank, String::from_utf8_lossy(&merge.right).into_owned()))
        .collect();
    let expected = [(0, Some(0), "e"), (1, Some(1), "l"), (0, Some(2), "ll"), (0, Some(3), "o")];
    assert_eq!(merges, expected.map(|(at, rank, right)| (at, rank, right.to_owned())));
    assert_eq!((words[0].symbols.len(), words[0].ids), (5, 1));
    // The space does not merge, since `h e` comes first.
    assert_eq!(trace.pieces[2].words.as_ref().unwrap()[0].merges.len(), 1);

    let scores = Tokenizer::from_metadata(&sentencepiece(), TokenizerOptions::default()).unwrap();
    for text in ["ab a", "", "aé b", &"ab".repeat(300)] {
        let trace = scores.trace(text, EncodeOptions::default());
        assert_eq!(trace.ids, scores.encode(text, EncodeOptions::default()), "{text}");
        let merges = trace.pieces.iter().filter_map(|piece| piece.words.as_ref()).flatten();
        assert!(merges.flat_map(|word| &word.merges).all(|merge| merge.rank.is_none()));
    }
}
