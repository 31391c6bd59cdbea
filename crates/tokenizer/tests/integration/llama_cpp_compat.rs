//! Compatibility with llama.cpp: ids of llama-cpp-python 0.3.36.

use gguf::{Array, Gguf, Metadata};
use gguf_models::token::{TokenType, char_of};
use gguf_store::LocalFile;
use gguf_tokenizer::{Compat, EncodeOptions, Tokenizer, TokenizerOptions};

use crate::support;

const LLAMA_CPP: TokenizerOptions = TokenizerOptions { compat: Compat::LlamaCpp, normalize: None };
const PARSED: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };
const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

const NORMAL: i32 = TokenType::Normal.id();
const CONTROL: i32 = TokenType::Control.id();
const USER_DEFINED: i32 = TokenType::UserDefined.id();

/// Returns a vocabulary of every byte as the id that is its value, these pairs of bytes, and these
/// tokens.
fn byte_level(pre: &str, pairs: &[[u8; 2]], others: &[(&str, i32)]) -> Metadata {
    let pair = |between: &str, [a, b]: &[u8; 2]| format!("{}{between}{}", char_of(*a), char_of(*b));
    let bytes = (0..=255).map(|byte| char_of(byte).to_string());
    let tokens = bytes.chain(pairs.iter().map(|bytes| pair("", bytes)));
    let types = vec![NORMAL; 256 + pairs.len()];
    let types: Vec<i32> = types.into_iter().chain(others.iter().map(|other| other.1)).collect();
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", pre.to_owned());
    let tokens: Vec<String> = tokens.chain(others.iter().map(|other| other.0.to_owned())).collect();
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    let merges: Vec<String> = pairs.iter().map(|bytes| pair(" ", bytes)).collect();
    metadata.set("tokenizer.ggml.merges", Array::from_strings(merges));
    metadata
}

/// Whether a pair merges shows where the text is split.
#[test]
fn pre_tokenizers_match_llama_cpp() {
    let pairs = [
        [b'a', 0xea],
        [0x9a, b'a'],
        [b' ', 0xe2],
        [0xbf, b'a'],
        [b'2', b'1'],
        [0xa3, b'1'],
        [b'1', 0xc2],
    ];
    for (pre, text, own, llama_cpp) in [
        // A letter of Unicode 16, which llama.cpp does not know.
        ("gpt-2", "a\u{a7da}a", &[256, 0x9f, 257][..], &[0x61, 0xea, 0x9f, 0x9a, 0x61][..]),
        // White space within the range of ideographs is not an ideograph.
        ("deepseek-coder", " \u{202f}", &[0x20, 0xe2, 0x80, 0xaf], &[258, 0x80, 0xaf]),
        // Ideographs are blocks, including unassigned characters.
        ("kimi-k2", "\u{faff}a", &[0xef, 0xab, 259], &[0xef, 0xab, 0xbf, 0x61]),
        // Only groups of three ASCII digits are split off.
        ("superbpe", "1²", &[0x31, 0xc2, 0xb2], &[262, 0xb2]),
        (
            "superbpe",
            "\u{663}123",
            &[0xd9, 0xa3, 0x31, 0x32, 0x33],
            &[0xd9, 0xa3, 0x31, 0x32, 0x33],
        ),
    ] {
        let metadata = byte_level(pre, &pairs, &[]);
        let ids =
            |options| Tokenizer::from_metadata(&metadata, options).unwrap().encode(text, PARSED);
        assert_eq!(ids(TokenizerOptions::default()), own, "{pre}: {text:?}");
        assert_eq!(ids(LLAMA_CPP), llama_cpp, "{pre}: {text:?} to llama.cpp");
    }
}

/// Encodes a text with `a` before each token; returns `#` for each token that is matched.
fn matched_tokens(others: &[(&str, i32)], fim: Option<u32>, options: EncodeOptions) -> String {
    let mut metadata = byte_level("gpt-2", &[], others);
    if let Some(id) = fim {
        metadata.set("tokenizer.ggml.prefix_token_id", id);
    }
    let tokenizer = Tokenizer::from_metadata(&metadata, LLAMA_CPP).unwrap();
    let text: String = others.iter().map(|other| format!("a{}", other.0)).collect();
    let ids = tokenizer.encode(&text, options);
    ids.iter().map(|id| char::from_u32(*id).filter(char::is_ascii).unwrap_or('#')).collect()
}

#[test]
fn special_tokens_are_recognised_by_text() {
    let others =
        [("</s>", NORMAL), ("<|end|>", CONTROL), ("<|start|>", CONTROL), ("<PRE>", NORMAL)];
    assert_eq!(matched_tokens(&others, None, PARSED), "a#a#a#a#");
    assert_eq!(matched_tokens(&others, None, PLAIN), "a</s>a<|end|>a#a<PRE>");
    // With a call token `<|end|>` is a part of the text, and `</s>` a tag.
    let others = [
        ("</s>", CONTROL),
        ("<|end|>", CONTROL),
        ("<|call|>", NORMAL),
        ("<|return|>", NORMAL),
        ("<|tool_response>", NORMAL),
    ];
    assert_eq!(matched_tokens(&others, None, PARSED), "a</s>a#a#a#a#");
    assert_eq!(
        matched_tokens(&others, None, PLAIN),
        "a</s>a#a<|call|>a<|return|>a<|tool_response>"
    );
    // A key for the FIM token leaves others unchanged.
    let others = [("</s>", USER_DEFINED), ("<PRE>", NORMAL)];
    assert_eq!(matched_tokens(&others, Some(5), PARSED), "a#a<PRE>");
    assert_eq!(matched_tokens(&others, Some(5), PLAIN), "a</s>a<PRE>");
}

/// The set `special_eog_ids` of llama.cpp, for vocabularies of 256 bytes and these tokens.
#[test]
fn end_of_generation_matches_llama_cpp() {
    type Keys = &'static [(&'static str, u32)];
    let cases: [(&[&str], Keys, &[u32]); 9] = [
        // Without a key, EOS of a byte-level vocabulary is 11.
        (&["<|im_end|>", "x", "[EOT]", "[e~["], &[], &[11, 256, 258, 259]),
        (&["<eos>", "<turn|>"], &[("eos", 5), ("eot", 6), ("eom", 7)], &[5, 6, 7, 256, 257]),
        // An id outside of the vocabulary is ignored.
        (&["_<EOT>"], &[("eos", 5), ("eot", 9999)], &[5, 256]),
        (
            &["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|fim_prefix|>"],
            &[("eos", 5)],
            &[5, 256, 257, 258],
        ),
        (&["<|fim_pad|>", "x"], &[("eos", 5), ("fim_pad", 257)], &[5, 257]),
        // gpt-oss and Solar Open: `<|end|>` ends a part of a message.
        (&["<|end|>", "<|return|>", "<|call|>"], &[("eos", 257)], &[257, 258]),
        (&["<|end|>", "<|flush|>", "<|calls|>"], &[("eos", 257)], &[257, 258]),
        (&["<|end|>", "<|call|>"], &[("eos", 5)], &[5, 256, 257]),
        // Gemma 4 and PLaMo 2: `</s>` is an HTML tag.
        (&["</s>", "<|tool_response>"], &[("eos", 5)], &[5, 257]),
    ];
    for (tokens, keys, expected) in cases {
        let others: Vec<_> = tokens.iter().map(|text| (*text, NORMAL)).collect();
        let mut metadata = byte_level("gpt-2", &[], &others);
        for (role, id) in keys {
            metadata.set(format!("tokenizer.ggml.{role}_token_id"), *id);
        }
        // The set does not depend on how texts are encoded.
        for options in [LLAMA_CPP, TokenizerOptions::default()] {
            let tokenizer = Tokenizer::from_metadata(&metadata, options).unwrap();
            assert_eq!(tokenizer.end_of_generation(), expected, "{tokens:?} {keys:?}");
        }
    }
}

#[test]
fn phi_3_matches_llama_cpp() {
    let Some(path) = support::reference("vocab/ggml-vocab-phi-3.gguf") else { return };
    let map = LocalFile::open(&path).unwrap();
    let gguf = Gguf::read(map.mapped()).unwrap();
    let tokenizer = Tokenizer::from_metadata(gguf.metadata(), LLAMA_CPP).unwrap();
    // Only ASCII white space is stripped.
    assert_eq!(
        tokenizer.encode("a<|assistant|>\u{2003}b", PARSED),
        [263, 32001, 29871, 30363, 29890]
    );
    assert_eq!(tokenizer.encode("a<|assistant|>\u{b} b", PARSED), [263, 32001, 289]);
    // User-defined in the file, but control tokens by their texts.
    assert_eq!(tokenizer.encode("a</s>b", PLAIN), [263, 829, 29879, 29958, 29890]);
}
