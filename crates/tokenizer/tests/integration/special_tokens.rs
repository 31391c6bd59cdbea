//! Control tokens that are very long, and text that must not become control tokens.

use gguf::{Array, Metadata};
use gguf_models::token::TokenType;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

const WITH_SPECIAL: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

/// Returns a tokenizer with these control tokens from id 4 on.
fn tokenizer(control: &[String], user_defined: &str) -> Tokenizer {
    let tokens: Vec<&str> = ["<unk>", "a", "b", "x"]
        .into_iter()
        .chain(control.iter().map(String::as_str))
        .chain([user_defined])
        .collect();
    let mut types = vec![TokenType::Normal.id(); 4];
    types.extend(control.iter().map(|_| TokenType::Control.id()));
    types.push(TokenType::UserDefined.id());
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "llama");
    metadata.set("tokenizer.ggml.scores", Array::from(&vec![-1f32; tokens.len()][..]));
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    metadata.set("tokenizer.ggml.add_space_prefix", false);
    Tokenizer::from_metadata(&metadata, TokenizerOptions::default()).unwrap()
}

/// The search knows only the beginning of long tokens.
#[test]
fn long_tokens_are_found_and_their_beginnings_are_not() {
    let begin = "<".to_owned() + &"x".repeat(400);
    let control =
        [begin.clone() + "1>", begin.clone() + "2>", begin.clone() + "2>2>", "x1>".to_owned()];
    let tokenizer = tokenizer(&control, "ab");
    let text = format!("a{}b{}{}", control[1], control[0], control[2]);
    assert_eq!(tokenizer.encode(&text, WITH_SPECIAL), [1, 5, 2, 4, 6]);
    // The beginning of a long token, and a short token within it.
    let ids = tokenizer.encode(&format!("<{}x1>a", "x".repeat(398)), WITH_SPECIAL);
    assert_eq!(ids[ids.len() - 2..], [7, 1]);
    assert!(!ids.contains(&4) && !ids.contains(&5));
}

#[test]
fn protected_text_becomes_no_control_token() {
    let control = ["<|end|>".to_owned(), "<|".to_owned()];
    let tokenizer = tokenizer(&control, "ab");
    let text = "a<|end|>ab<|";
    assert_eq!(tokenizer.encode(text, WITH_SPECIAL), [1, 4, 6, 5]);
    let prompt = format!("<|end|>{}<|end|>", tokenizer.protect(text));
    let ids = tokenizer.encode_protected(&prompt, WITH_SPECIAL);
    let inner = &ids[1..ids.len() - 1];
    assert_eq!((ids[0], ids[ids.len() - 1]), (4, 4));
    assert!(!inner.contains(&4) && !inner.contains(&5), "{ids:?}");
    // User-defined tokens are part of ordinary text.
    assert!(inner.contains(&6), "{ids:?}");
    let plain = EncodeOptions { parse_special: false, ..WITH_SPECIAL };
    assert_eq!(inner, tokenizer.encode(text, plain));
}
