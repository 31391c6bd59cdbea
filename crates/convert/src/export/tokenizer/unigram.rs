//! Vocabularies of most probable pieces: T5's and XLM-RoBERTa's SentencePiece models, or
//! `tokenizer.json` where such a model cannot say what the GGUF does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gguf_models::convert::VocabularyKind;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::json::{added, file, sequence};
use super::sentencepiece::{Model, UNIGRAM, symbols};
use super::{File, Token, Tokenizer, Vocabulary, is_added, json_file, post_processor};
use crate::vocab::{PADDING_SCORE, T5_MODEL, XLM_ROBERTA_MODEL};

/// What XLM-RoBERTa's tokens begin with, whatever its model does.
const XLM_ROBERTA: [(&str, TokenType); 4] = [
    ("<s>", TokenType::Control),
    ("<pad>", TokenType::Control),
    ("</s>", TokenType::Control),
    ("<unk>", TokenType::Unknown),
];

/// What its model begins with instead.
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
    let text = Preparation {
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
        true => realigned(vocabulary),
        false => as_they_are(vocabulary, out),
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

/// What happens to a text before it is cut.
struct Preparation {
    space_prefix: bool,
    fold_spaces: bool,
    charsmap: Vec<u8>,
}

type Pieces = Vec<(String, f32, TokenType)>;

fn as_pieces(tokens: &[Token]) -> Pieces {
    let is_symbol = symbols(tokens);
    let kind = |token: &Token| if is_symbol(token) { TokenType::UserDefined } else { token.kind };
    tokens.iter().map(|token| (token.text.to_owned(), token.score, kind(token))).collect()
}

/// The pieces of a model with the same ids; what was added to it goes to a file of its own. `None`
/// if there are tokens that neither can have.
fn as_they_are(vocabulary: &Vocabulary, out: &mut Tokenizer) -> Option<Pieces> {
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
    Some(as_pieces(&tokens[..trained]))
}

/// The pieces of XLM-RoBERTa's model: three in place of the first four, then the same. `None` if
/// tokens that such a model does not have follow.
fn realigned(vocabulary: &Vocabulary) -> Option<Pieces> {
    let (first, rest) = vocabulary.tokens.split_at_checked(XLM_ROBERTA.len())?;
    let expected = first.iter().zip(XLM_ROBERTA);
    let is_usual = |(token, (text, kind)): (&Token, (&str, TokenType))| {
        (token.text, token.score, token.kind) == (text, 0.0, kind)
    };
    // Its padding counts from the pieces of the model, which are one fewer.
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
    Some(replaced.into_iter().chain(as_pieces(rest)).collect())
}

fn tokenizer_json(
    vocabulary: &Vocabulary,
    text: &Preparation,
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
    // The reader takes a field about decoding for one about folding spaces.
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
