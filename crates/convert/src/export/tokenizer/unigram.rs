//! Unigram vocabularies: SentencePiece models of T5 and XLM-RoBERTa, or `tokenizer.json` if a SentencePiece model
//! cannot express the vocabulary.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gguf_models::convert::VocabularyKind;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::json::{added, file, sequence};
use super::sentencepiece::{Model, UNIGRAM, symbols};
use super::{File, Token, Tokenizer, Vocabulary, is_added, json_file, post_processor};
use crate::vocab::{PADDING_SCORE, T5_MODEL, XLM_ROBERTA_MODEL};

/// First tokens of XLM-RoBERTa.
const XLM_ROBERTA: [(&str, TokenType); 4] = [
    ("<s>", TokenType::Control),
    ("<pad>", TokenType::Control),
    ("</s>", TokenType::Control),
    ("<unk>", TokenType::Unknown),
];

/// First pieces of XLM-RoBERTa's model, which its tokens replace.
const REPLACED: [(&str, TokenType); 3] =
    [("<unk>", TokenType::Unknown), ("<s>", TokenType::Control), ("</s>", TokenType::Control)];

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    let flag = |name: &str| vocabulary.metadata.bool(&format!("tokenizer.ggml.{name}"));
    let charsmap = vocabulary.metadata.array("tokenizer.ggml.precompiled_charsmap");
    let charsmap: Vec<u8> = charsmap
        .into_iter()
        .flat_map(|map| {
            map.iter()
                .filter_map(|byte| u8::try_from(byte.to_i64()? & 0xFF).ok())
                .collect::<Vec<_>>()
        })
        .collect();
    let text = NormalizerSettings {
        space_prefix: flag("add_space_prefix").unwrap_or(true),
        fold_spaces: flag("remove_extra_whitespaces").unwrap_or(true),
        charsmap,
    };
    let is_encoder = vocabulary.kind == VocabularyKind::Encoder;
    let class = if is_encoder { "XLMRobertaTokenizer" } else { "T5Tokenizer" };
    config.insert("tokenizer_class".into(), class.into());
    if is_encoder {
        for (role, from) in [("cls", "bos"), ("sep", "eos")] {
            if let Some((_, token)) = vocabulary.role(from) {
                config.entry(format!("{role}_token")).or_insert(token.into());
            }
        }
    }
    let pieces = match is_encoder {
        true => pieces_with_shifted_ids(vocabulary),
        false => pieces_with_same_ids(vocabulary, out),
    };
    let Some(pieces) = pieces else {
        return tokenizer_json(vocabulary, &text, out, config);
    };
    let model = Model {
        pieces,
        algorithm: UNIGRAM,
        add_dummy_prefix: text.space_prefix,
        remove_extra_whitespaces: text.fold_spaces,
        charsmap: &text.charsmap,
    };
    let name = if is_encoder { XLM_ROBERTA_MODEL } else { T5_MODEL };
    out.files.push(File { name, bytes: model.bytes(vocabulary) });
    vocabulary.set_flags(config);
}

/// Normalizer settings.
struct NormalizerSettings {
    space_prefix: bool,
    fold_spaces: bool,
    charsmap: Vec<u8>,
}

type Pieces = Vec<(String, f32, TokenType)>;

fn unchanged_pieces(tokens: &[Token]) -> Pieces {
    let is_symbol = symbols(tokens);
    let kind = |token: &Token| if is_symbol(token) { TokenType::UserDefined } else { token.kind };
    tokens.iter().map(|token| (token.text.to_owned(), token.score, kind(token))).collect()
}

/// Returns the pieces of a model with the same ids, and writes added tokens to a separate file. `None` if a token fits
/// neither.
fn pieces_with_same_ids(vocabulary: &Vocabulary, out: &mut Tokenizer) -> Option<Pieces> {
    let tokens = vocabulary.without_padding(PADDING_SCORE);
    let is_user = |token: &Token| token.kind == TokenType::UserDefined;
    if tokens.iter().any(|token| is_user(token) && !is_added(token)) {
        return None;
    }
    let added: Map<String, Value> = (tokens.iter().enumerate())
        .filter(|(_, token)| is_user(token))
        .map(|(id, token)| (token.text.to_owned(), id.into()))
        .collect();
    let trained = tokens.iter().rposition(|token| !is_user(token)).map_or(0, |last| last + 1);
    if !added.is_empty() {
        out.files.push(json_file("added_tokens.json", &added.into()));
    }
    Some(unchanged_pieces(&tokens[..trained]))
}

/// Returns the pieces of XLM-RoBERTa's model: three for the first four tokens, then the same. `None` if other tokens
/// follow.
fn pieces_with_shifted_ids(vocabulary: &Vocabulary) -> Option<Pieces> {
    let (first, rest) = vocabulary.tokens.split_at_checked(XLM_ROBERTA.len())?;
    let expected = first.iter().zip(XLM_ROBERTA);
    let is_usual = |(token, (text, kind)): (&Token, (&str, TokenType))| {
        (token.text, token.score, token.kind) == (text, 0.0, kind)
    };
    // Padding tokens are numbered by pieces of the model, which has one piece fewer.
    let is_padding = |(place, token): (usize, &Token)| {
        token.kind == TokenType::Unused
            && token.score == PADDING_SCORE
            && token.text == format!("[PAD{}]", place + REPLACED.len())
    };
    let last = rest.iter().enumerate().rposition(|entry| !is_padding(entry));
    let rest = &rest[..last.map_or(0, |last| last + 1)];
    if !expected.into_iter().all(is_usual)
        || rest
            .iter()
            .any(|token| matches!(token.kind, TokenType::Control | TokenType::UserDefined))
    {
        return None;
    }
    let replaced = REPLACED.map(|(text, kind)| (text.to_owned(), 0.0, kind));
    Some(replaced.into_iter().chain(unchanged_pieces(rest)).collect())
}

fn tokenizer_json(
    vocabulary: &Vocabulary,
    text: &NormalizerSettings,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    let tokens = vocabulary.without_padding(PADDING_SCORE);
    let unknown = tokens.iter().position(|token| token.kind == TokenType::Unknown);
    if let Some(unknown) = unknown {
        config.insert("unk_token".into(), tokens[unknown].text.into());
    }
    let mut tokenizer = file(json!({
        "type": "Unigram",
        "unk_id": unknown,
        "byte_fallback": tokens.iter().any(|token| token.kind == TokenType::Byte),
        "vocab": tokens
            .iter()
            .map(|token| json!([token.text, f64::from(token.score)]))
            .collect::<Vec<_>>(),
    }));
    let is_added = |(_, token): &(usize, &Token)| {
        matches!(token.kind, TokenType::Control | TokenType::Unknown | TokenType::UserDefined)
    };
    tokenizer["added_tokens"] = (tokens.iter().enumerate().filter(is_added))
        .map(|(id, token)| {
            let kind =
                if token.kind == TokenType::Unknown { TokenType::Control } else { token.kind };
            added(vocabulary, id, token.text, kind, false)
        })
        .collect();
    let mut normalizers = Vec::new();
    if !text.charsmap.is_empty() {
        let map = BASE64.encode(&text.charsmap);
        normalizers.push(json!({ "type": "Precompiled", "precompiled_charsmap": map }));
    }
    if text.fold_spaces {
        normalizers.push(json!({
            "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " ",
        }));
    }
    tokenizer["normalizer"] = sequence("normalizers", normalizers);
    let scheme = if text.space_prefix { "always" } else { "never" };
    let spaces = json!({
        "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme, "split": true,
    });
    tokenizer["pre_tokenizer"] = spaces.clone();
    tokenizer["decoder"] = spaces;
    post_processor::fill(vocabulary, &mut tokenizer, config);
    // The reader uses this field, which is about decoding, for the removal of extra spaces.
    config.insert("clean_up_tokenization_spaces".into(), text.fold_spaces.into());
    config.insert("add_prefix_space".into(), text.space_prefix.into());
    let special: Vec<Value> = (tokens.iter())
        .filter(|token| token.kind == TokenType::Control)
        .map(|token| Value::from(token.text))
        .filter(|text| !config.values().any(|named| named == text))
        .collect();
    if !special.is_empty() {
        config.insert("additional_special_tokens".into(), special.into());
    }
    out.files.push(json_file("tokenizer.json", &tokenizer));
}
