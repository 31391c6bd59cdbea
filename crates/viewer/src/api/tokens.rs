//! The vocabulary, and how texts become tokens.

use std::collections::HashMap;

use gguf::{Array, Metadata, ValueType};
use gguf_kit::json::special_tokens;
use gguf_kit::summary::{SpecialToken, Summary};
use gguf_models::token::TokenType;
use gguf_tokenizer::{Encode, Merge, Piece, Tokenizer, Word};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Question;
use super::keys::SHOWN;
use crate::answer::{Answer, Answered, Failure, cut, hex};

/// The longest text that is taken apart.
const LONGEST: usize = 64 << 10;

/// Merges of one answer at most.
const MERGES: usize = 4096;

/// The tokens of a vocabulary as the file has them.
fn texts(metadata: &Metadata) -> Result<&Array, Failure> {
    let tokens = metadata.array("tokenizer.ggml.tokens");
    tokens.filter(|tokens| tokens.element_type() == ValueType::String).ok_or_else(|| {
        let finding = gguf::Finding::error("tokenizer-missing", "the model has no vocabulary");
        gguf_kit::Error::from(finding).into()
    })
}

/// `GET tokenizer`.
pub fn tokenizer(question: &Question) -> Answered {
    let model = question.model.model()?;
    let metadata = model.metadata();
    let tokens = texts(metadata)?;
    let vocabulary = Summary::of(model).vocabulary;
    let made = question.model.tokenizer();
    Ok(Answer::Json(json!({
        "model": vocabulary.model,
        "pre": vocabulary.pre,
        "tokens": tokens.len(),
        "merges": metadata.array("tokenizer.ggml.merges").map(Array::len),
        "adds_first": made.as_ref().ok().map(|tokenizer| tokenizer.adds_first()),
        "has_scores": metadata.array("tokenizer.ggml.scores").is_some(),
        "special": special_tokens(&vocabulary),
        "error": made.err().map(|failure| failure.error),
    })))
}

/// `GET tokens`.
pub fn tokens(question: &Question) -> Answered {
    let (model, ask) = (&question.model, question.ask);
    let metadata = model.model()?.metadata();
    let all = texts(metadata)?;
    let page = ask.page()?;
    let tokenizer = model.tokenizer().ok();
    let types = metadata.array("tokenizer.ggml.token_type").and_then(Array::to_i64s);
    let type_of = |id: u64| {
        let number = types.as_ref().and_then(|types| types.get(id as usize).copied());
        number.map_or(Some(TokenType::Normal), TokenType::from_id)
    };
    let wanted_type = ask.text("type");
    let search = ask.search();
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
            || stands_for(tokenizer, *id).is_some_and(|bytes| has(&bytes))
    };
    let strings = || all.strings().into_iter().flatten();
    let (found, count) = match (&search, wanted_type) {
        (None, None) => {
            let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
            let rest = (0..).zip(strings()).skip(skipped);
            (rest.take(page.limit as usize).collect(), all.len())
        }
        _ => page.of((0..).zip(strings()).filter(fits)),
    };
    let scores = metadata.array("tokenizer.ggml.scores").and_then(Array::to_f64s);
    let special = Summary::of(model.model()?).vocabulary.special;
    let token = |(id, text): (u64, &[u8])| {
        let means = stands_for(tokenizer, id);
        let has_role = |token: &&SpecialToken| token.id == id;
        json!({
            "id": id,
            "text": cut(text, SHOWN),
            "text_bytes": text.len(),
            "hex": hex(&text[..text.len().min(SHOWN)]),
            "stands_for": means.as_ref().map(|bytes| cut(bytes, SHOWN)),
            "stands_for_hex": means.as_ref().map(|bytes| hex(&bytes[..bytes.len().min(SHOWN)])),
            "type": type_name(type_of(id)),
            "score": scores.as_ref().and_then(|scores| scores.get(id as usize)),
            "roles": special.iter().filter(has_role).map(|token| token.role).collect::<Vec<_>>(),
        })
    };
    Ok(Answer::Json(json!({
        "total": all.len(),
        "found": count,
        "offset": page.offset,
        "tokens": found.into_iter().map(token).collect::<Json>(),
    })))
}

fn stands_for(tokenizer: Option<&Tokenizer>, id: u64) -> Option<Vec<u8>> {
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
pub fn merges(question: &Question) -> Answered {
    let metadata = question.model.model()?.metadata();
    let merges = metadata.array("tokenizer.ggml.merges");
    let (page, search) = (question.ask.page()?, question.ask.search());
    let fits = |(_, text): &(u64, &[u8])| {
        let has = |search: &String| String::from_utf8_lossy(text).to_lowercase().contains(search);
        search.as_ref().is_none_or(has)
    };
    let strings = merges.into_iter().flat_map(|merges| merges.strings().into_iter().flatten());
    let (found, count) = page.of((0..).zip(strings).filter(fits));
    // The numbers of what this page joins to, in one go over the vocabulary.
    let results: Vec<Vec<u8>> = found.iter().map(|(_, text)| joined(text).concat()).collect();
    let mut ids: HashMap<&[u8], Option<u64>> = results.iter().map(|of| (&of[..], None)).collect();
    for (id, token) in (0..).zip(texts(metadata)?.strings().into_iter().flatten()) {
        if let Some(slot) = ids.get_mut(token) {
            slot.get_or_insert(id);
        }
    }
    let ids: Vec<_> = results.iter().map(|of| ids[&of[..]]).collect();
    let merge = |((rank, text), id): ((u64, &[u8]), Option<u64>)| {
        let [left, right] = joined(text);
        json!({
            "rank": rank,
            "left": cut(left, SHOWN),
            "right": cut(right, SHOWN),
            "result": cut(&[left, right].concat(), SHOWN),
            "id": id,
        })
    };
    Ok(Answer::Json(json!({
        "total": merges.map_or(0, Array::len),
        "found": count,
        "offset": page.offset,
        "merges": found.into_iter().zip(ids).map(merge).collect::<Json>(),
    })))
}

/// The two sides of a merge. The first can be a space itself.
fn joined(text: &[u8]) -> [&[u8]; 2] {
    match text.iter().skip(1).position(|byte| *byte == b' ') {
        Some(at) => [&text[..at + 1], &text[at + 2..]],
        None => [text, &[]],
    }
}

/// What `POST tokenize` is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    text: String,
    #[serde(default = "yes")]
    add_special: bool,
    #[serde(default = "yes")]
    parse_special: bool,
}

pub fn yes() -> bool {
    true
}

/// `POST tokenize`.
pub fn tokenize(question: Question, sent: Text) -> Answered {
    if sent.text.len() > LONGEST {
        return Err(Failure::request(format!("the text has more than {LONGEST} bytes")));
    }
    let tokenizer = question.model.tokenizer()?;
    let how = Encode { add_special: sent.add_special, parse_special: sent.parse_special };
    let trace = tokenizer.trace(&sent.text, how);
    let token = |id: &u32| {
        let means = tokenizer.token_bytes(*id).unwrap_or_default();
        json!({
            "id": id,
            "text": cut(tokenizer.token_text(*id).unwrap_or_default(), SHOWN),
            "stands_for": cut(&means, SHOWN),
            "hex": hex(&means[..means.len().min(SHOWN)]),
            "type": type_name(tokenizer.token_type(*id)),
        })
    };
    let scores = question.model.model()?.metadata().array("tokenizer.ggml.scores");
    let scores = scores.and_then(Array::to_f64s);
    let mut left = MERGES;
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
            "words": words.map(|words| words.iter().map(|of| word(of, scores.as_deref())).collect::<Json>()),
        })
    };
    Ok(Answer::Json(json!({
        "ids": trace.ids,
        "tokens": trace.ids.iter().map(token).collect::<Json>(),
        "steps": trace.pieces.iter().map(&mut piece).collect::<Json>(),
    })))
}

fn word(word: &Word, scores: Option<&[f64]>) -> Json {
    let text = |bytes: &Vec<u8>| cut(bytes, SHOWN);
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
