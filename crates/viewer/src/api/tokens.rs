//! The vocabulary, merges and tokenization.

use std::collections::HashMap;

use gguf::{Array, Metadata, ValueType};
use gguf_kit::json::special_tokens;
use gguf_kit::summary::{SpecialToken, Summary};
use gguf_models::token::TokenType;
use gguf_tokenizer::{EncodeOptions, Merge, Piece, Tokenizer, Word};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Request;
use super::keys::MAX_CHARS;
use crate::response::{ApiError, ApiResult, Response, hex, truncated};

/// Maximum size of a text to tokenize in bytes.
const MAX_TEXT: usize = 64 << 10;

/// Maximum number of merges per response.
const MAX_MERGES: usize = 4096;

/// Returns the tokens as stored in the file.
fn stored_tokens(metadata: &Metadata) -> Result<&Array, ApiError> {
    let tokens = metadata.array("tokenizer.ggml.tokens");
    tokens.filter(|tokens| tokens.element_type() == ValueType::String).ok_or_else(|| {
        let finding = gguf::Finding::error("tokenizer-missing", "the model has no vocabulary");
        gguf_kit::Error::from(finding).into()
    })
}

/// `GET tokenizer`.
pub fn tokenizer(request: &Request) -> ApiResult {
    let model = request.model.model()?;
    let metadata = model.metadata();
    let tokens = stored_tokens(metadata)?;
    let vocabulary = Summary::of(model).vocabulary;
    let tokenizer = request.model.tokenizer();
    Ok(Response::Json(json!({
        "model": vocabulary.model,
        "pre": vocabulary.pre,
        "tokens": tokens.len(),
        "merges": metadata.array("tokenizer.ggml.merges").map(Array::len),
        "adds_first": tokenizer.as_ref().ok().map(|tokenizer| tokenizer.adds_bos()),
        "has_scores": metadata.array("tokenizer.ggml.scores").is_some(),
        "special": special_tokens(&vocabulary),
        "error": tokenizer.err().map(|error| error.error),
    })))
}

/// `GET tokens`.
pub fn tokens(request: &Request) -> ApiResult {
    let (model, query) = (&request.model, request.query);
    let metadata = model.model()?.metadata();
    let all = stored_tokens(metadata)?;
    let page = query.page()?;
    let tokenizer = model.tokenizer().ok();
    let types = metadata.array("tokenizer.ggml.token_type").and_then(Array::to_i64s);
    let type_of = |id: u64| {
        let number = types.as_ref().and_then(|types| types.get(id as usize).copied());
        number.map_or(Some(TokenType::Normal), TokenType::from_id)
    };
    let wanted_type = query.text("type");
    let search = query.search();
    let wanted_id: Option<u64> =
        search.as_deref().and_then(|text| text.strip_prefix('#')?.parse().ok());
    let fits = |(id, text): &(u64, &[u8])| {
        if wanted_type.is_some_and(|wanted| type_name(type_of(*id)) != wanted) {
            return false;
        }
        let Some(search) = &search else { return true };
        let has =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains(search.as_str());
        wanted_id == Some(*id)
            || has(text)
            || decoded(tokenizer, *id).is_some_and(|bytes| has(&bytes))
    };
    let strings = || all.strings().into_iter().flatten();
    let (found, count) = match (&search, wanted_type) {
        (None, None) => {
            let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
            let rest = (0..).zip(strings()).skip(skipped);
            (rest.take(page.limit as usize).collect(), all.len())
        }
        _ => page.slice((0..).zip(strings()).filter(fits)),
    };
    let scores = metadata.array("tokenizer.ggml.scores").and_then(Array::to_f64s);
    let special = Summary::of(model.model()?).vocabulary.special;
    let token = |(id, text): (u64, &[u8])| {
        let decoded = decoded(tokenizer, id);
        let has_role = |token: &&SpecialToken| token.id == id;
        json!({
            "id": id,
            "text": truncated(text, MAX_CHARS),
            "text_bytes": text.len(),
            "hex": hex(&text[..text.len().min(MAX_CHARS)]),
            "stands_for": decoded.as_ref().map(|bytes| truncated(bytes, MAX_CHARS)),
            "stands_for_hex": decoded.as_ref().map(|bytes| hex(&bytes[..bytes.len().min(MAX_CHARS)])),
            "type": type_name(type_of(id)),
            "score": scores.as_ref().and_then(|scores| scores.get(id as usize)),
            "roles": special.iter().filter(has_role).map(|token| token.role).collect::<Vec<_>>(),
        })
    };
    Ok(Response::Json(json!({
        "total": all.len(),
        "found": count,
        "offset": page.offset,
        "tokens": found.into_iter().map(token).collect::<Json>(),
    })))
}

fn decoded(tokenizer: Option<&Tokenizer>, id: u64) -> Option<Vec<u8>> {
    tokenizer?.token_bytes(u32::try_from(id).ok()?)
}

fn type_name(kind: Option<TokenType>) -> &'static str {
    match kind {
        Some(TokenType::Normal) => "normal",
        Some(TokenType::Unknown) => "unknown",
        Some(TokenType::Control) => "control",
        Some(TokenType::UserDefined) => "user-defined",
        Some(TokenType::Byte) => "byte",
        Some(TokenType::Unused) | None => "unused",
    }
}

/// `GET merges`.
pub fn merges(request: &Request) -> ApiResult {
    let metadata = request.model.model()?.metadata();
    let merges = metadata.array("tokenizer.ggml.merges");
    let (page, search) = (request.query.page()?, request.query.search());
    let fits = |(_, text): &(u64, &[u8])| {
        let has = |search: &String| String::from_utf8_lossy(text).to_lowercase().contains(search);
        search.as_ref().is_none_or(has)
    };
    let strings = merges.into_iter().flat_map(|merges| merges.strings().into_iter().flatten());
    let (found, count) = page.slice((0..).zip(strings).filter(fits));
    // Look up the ids of all merged tokens in one pass over the vocabulary.
    let results: Vec<Vec<u8>> = found.iter().map(|(_, text)| merge_pair(text).concat()).collect();
    let mut ids: HashMap<&[u8], Option<u64>> =
        results.iter().map(|token| (&token[..], None)).collect();
    for (id, token) in (0..).zip(stored_tokens(metadata)?.strings().into_iter().flatten()) {
        if let Some(slot) = ids.get_mut(token) {
            slot.get_or_insert(id);
        }
    }
    let ids: Vec<_> = results.iter().map(|token| ids[&token[..]]).collect();
    let merge = |((rank, text), id): ((u64, &[u8]), Option<u64>)| {
        let [left, right] = merge_pair(text);
        json!({
            "rank": rank,
            "left": truncated(left, MAX_CHARS),
            "right": truncated(right, MAX_CHARS),
            "result": truncated(&[left, right].concat(), MAX_CHARS),
            "id": id,
        })
    };
    Ok(Response::Json(json!({
        "total": merges.map_or(0, Array::len),
        "found": count,
        "offset": page.offset,
        "merges": found.into_iter().zip(ids).map(merge).collect::<Json>(),
    })))
}

/// Splits a merge into its two tokens. The first may itself begin with a space.
fn merge_pair(text: &[u8]) -> [&[u8]; 2] {
    match text.iter().skip(1).position(|byte| *byte == b' ') {
        Some(at) => [&text[..at + 1], &text[at + 2..]],
        None => [text, &[]],
    }
}

/// Body of `POST tokenize`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizeBody {
    text: String,
    #[serde(default = "default_true")]
    add_special: bool,
    #[serde(default = "default_true")]
    parse_special: bool,
}

/// Default value of a boolean field.
pub fn default_true() -> bool {
    true
}

/// `POST tokenize`.
pub fn tokenize(request: Request, body: TokenizeBody) -> ApiResult {
    if body.text.len() > MAX_TEXT {
        let bytes = body.text.len();
        return Err(ApiError::bad_request(format!(
            "the text has {bytes} bytes; at most {MAX_TEXT} can be tokenized at once"
        )));
    }
    let tokenizer = request.model.tokenizer()?;
    let options =
        EncodeOptions { add_special: body.add_special, parse_special: body.parse_special };
    let trace = tokenizer.trace(&body.text, options);
    let token = |id: &u32| {
        let bytes = tokenizer.token_bytes(*id).unwrap_or_default();
        json!({
            "id": id,
            "text": truncated(tokenizer.token_text(*id).unwrap_or_default(), MAX_CHARS),
            "stands_for": truncated(&bytes, MAX_CHARS),
            "hex": hex(&bytes[..bytes.len().min(MAX_CHARS)]),
            "type": type_name(tokenizer.token_type(*id)),
        })
    };
    let scores = request.model.model()?.metadata().array("tokenizer.ggml.scores");
    let scores = scores.and_then(Array::to_f64s);
    let mut left = MAX_MERGES;
    let mut piece = |piece: &Piece| {
        let words = piece.words.as_ref().filter(|words| {
            let merges = words.iter().map(|word| word.merges.len()).sum();
            let fits = left >= merges;
            left = left.saturating_sub(merges);
            fits
        });
        json!({
            "text": piece.text,
            "kind": if piece.special { "token" } else { "text" },
            "tokens": [piece.ids.start, piece.ids.end],
            "words": words.map(|words| words.iter().map(|entry| word(entry, scores.as_deref())).collect::<Json>()),
        })
    };
    Ok(Response::Json(json!({
        "ids": trace.ids,
        "tokens": trace.ids.iter().map(token).collect::<Json>(),
        "steps": trace.pieces.iter().map(&mut piece).collect::<Json>(),
    })))
}

fn word(word: &Word, scores: Option<&[f64]>) -> Json {
    let text = |bytes: &Vec<u8>| truncated(bytes, MAX_CHARS);
    let merge = |merge: &Merge| {
        let score = || scores?.get(merge.id as usize);
        json!({
            "at": merge.at,
            "left": text(&merge.left),
            "right": text(&merge.right),
            "id": merge.id,
            "rank": merge.rank,
            "score": merge.rank.is_none().then(score),
        })
    };
    json!({
        "symbols": word.symbols.iter().map(text).collect::<Vec<_>>(),
        "tokens": word.ids,
        "merges": word.merges.iter().map(merge).collect::<Json>(),
    })
}
