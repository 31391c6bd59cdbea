//! Repairs of the tokenizer.

use gguf::{Array, Metadata, RawHeader, ValueType};
use gguf_models::schema;
use gguf_models::token::{TokenType, byte_of_token};

use crate::rules::tokenizer::special_tokens::{
    ADD_BOS, BOS, EOS, is_control_text, looks_special, missing_bos, template_has_bos, text,
};
use crate::rules::tokenizer::vocabulary_family::Family;
use crate::rules::tokenizer::{MODEL, PRE, TOKENS, TYPES};

const SCORES: &str = "tokenizer.ggml.scores";
/// Type of a token without another one.
const NORMAL: i32 = TokenType::Normal.id();

fn token_count(metadata: &Metadata) -> Option<usize> {
    let tokens = metadata.array(TOKENS)?;
    // Each token takes bytes, so the count fits `usize`.
    (tokens.element_type() == ValueType::String).then_some(tokens.len() as usize)
}

fn per_token(metadata: &mut Metadata, repairs: &mut Vec<String>) {
    let Some(len) = token_count(metadata) else { return };
    if let Some(scores) = metadata.array(SCORES)
        && (scores.len() != len as u64 || scores.element_type() != ValueType::F32)
    {
        let mut values: Vec<f32> = scores
            .iter()
            .take(len)
            .map(|value| value.to_f64().or(value.to_i64().map(|v| v as f64)).unwrap_or(0.0) as f32)
            .collect();
        values.resize(len, 0.0);
        repairs.push(format!("resized {SCORES} to {len} numbers, one per token"));
        metadata.set(SCORES, Array::from(&values[..]));
    }
    if let Some(types) = metadata.array(TYPES)
        && (types.len() != len as u64 || types.element_type() != ValueType::I32)
    {
        let to_i32 = |value: gguf::Value| value.to_i64().and_then(|v| i32::try_from(v).ok());
        let mut values: Vec<i32> =
            types.iter().take(len).map(|value| to_i32(value).unwrap_or(NORMAL)).collect();
        values.resize(len, NORMAL);
        repairs.push(format!("resized {TYPES} to {len} numbers, one per token"));
        metadata.set(TYPES, Array::from(&values[..]));
    }
}

/// Repairs the tokenizer of a model.
pub(super) fn fix(header: &mut RawHeader, repairs: &mut Vec<String>) {
    per_token(&mut header.metadata, repairs);
    padding(header, repairs);
    types(&mut header.metadata, repairs);
    beginning(&mut header.metadata, repairs);
    pre(&mut header.metadata, repairs);
}

/// Returns the texts of all tokens.
fn texts(metadata: &Metadata) -> Option<Vec<Vec<u8>>> {
    Some(metadata.array(TOKENS)?.strings()?.map(<[u8]>::to_vec).collect())
}

/// Appends the padding tokens that the token embedding has rows for, as converters write them.
fn padding(header: &mut RawHeader, repairs: &mut Vec<String>) {
    /// Maximum number of padding tokens; published models have at most a few thousand.
    const MAX_PADDING: usize = 1 << 16;
    let known = header.metadata.architecture().and_then(schema::architecture);
    if known.is_none_or(|architecture| architecture.open) {
        return;
    }
    let embedding = header.tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let rows = embedding.and_then(|tensor| tensor.shape.get(1)).copied();
    let Some(rows) = rows.and_then(|rows| usize::try_from(rows).ok()) else { return };
    let Some(mut tokens) = texts(&header.metadata) else { return };
    let missing = rows.saturating_sub(tokens.len());
    if missing == 0 || missing > MAX_PADDING || tokens.is_empty() {
        return;
    }
    tokens.extend((tokens.len()..rows).map(|id| format!("[PAD{id}]").into_bytes()));
    let metadata = &mut header.metadata;
    metadata.set(TOKENS, Array::from_strings(&tokens));
    if let Some(mut types) = metadata.array(TYPES).and_then(Array::to_i64s) {
        types.resize(rows, i64::from(TokenType::Unused.id()));
        let types: Vec<i32> = types.into_iter().map(|id| id as i32).collect();
        metadata.set(TYPES, Array::from(&types[..]));
    }
    if let Some(mut scores) = metadata.array(SCORES).and_then(Array::to_f64s) {
        scores.resize(rows, -10_000.0);
        let scores: Vec<f32> = scores.into_iter().map(|score| score as f32).collect();
        metadata.set(SCORES, Array::from(&scores[..]));
    }
    repairs.push(format!("added {missing} padding tokens, one per row of the token embedding"));
}

/// Sets the types of tokens whose text leaves no doubt: control tokens and byte tokens.
fn types(metadata: &mut Metadata, repairs: &mut Vec<String>) {
    let Some(types) = metadata.array(TYPES).and_then(Array::to_i64s) else { return };
    let Some(texts) = texts(metadata) else { return };
    let mut types: Vec<i32> = types.into_iter().map(|v| v.try_into().unwrap_or(NORMAL)).collect();
    let before = types.clone();
    for name in ["bos", "eos", "eot", "eom"] {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = metadata.u64(&key).and_then(|id| usize::try_from(id).ok()) else { continue };
        // A word is not made special: the id is wrong, not the type.
        let is_special = texts.get(id).is_some_and(|text| looks_special(text));
        if let Some(ty) = types.get_mut(id).filter(|ty| **ty == NORMAL && is_special) {
            *ty = TokenType::Control.id();
            repairs.push(format!("set the type of token {id} ({name}) to control"));
        }
    }
    let has_bytes = metadata.str(MODEL) == Some("llama");
    let (mut bytes, mut control) = (0, 0);
    for (ty, text) in types.iter_mut().zip(&texts).filter(|(ty, _)| **ty == NORMAL) {
        if has_bytes && byte_of_token(text).is_some() {
            *ty = TokenType::Byte.id();
            bytes += 1;
        } else if is_control_text(text) {
            *ty = TokenType::Control.id();
            control += 1;
        }
    }
    if bytes > 0 {
        repairs.push(format!("set the type of {bytes} byte tokens to byte"));
    }
    if control > 0 {
        repairs.push(format!("set the type of {control} more special tokens to control"));
    }
    if types != before {
        metadata.set(TYPES, Array::from(&types[..]));
    }
}

/// Sets BOS if one token can be it, and whether it is added if the vocabulary implies it.
fn beginning(metadata: &mut Metadata, repairs: &mut Vec<String>) {
    let Some(tokens) = metadata.array(TOKENS) else { return };
    let missing = missing_bos(metadata, tokens).filter(|_| metadata.bool(ADD_BOS) == Some(true));
    if let Some(id) = missing {
        metadata.set(BOS, id);
        repairs.push(format!("set {BOS} to {id}"));
    }
    let Some(expected) = Family::of(metadata).and_then(|family| family.adds_bos) else { return };
    let (Some(false), true) = (metadata.bool(ADD_BOS), expected) else { return };
    let bos = metadata.u64(BOS).and_then(|id| text(metadata.array(TOKENS)?, id));
    if bos.is_some_and(|bos| !template_has_bos(metadata, bos)) {
        metadata.set(ADD_BOS, true);
        repairs.push(format!("set {ADD_BOS} to true"));
    }
}

/// Sets the pre-tokenizer that the vocabulary implies.
fn pre(metadata: &mut Metadata, repairs: &mut Vec<String>) {
    if metadata.str(MODEL) != Some("gpt2") {
        return;
    }
    let Some(family) = Family::of(metadata) else { return };
    let is_right = metadata.str(PRE).is_some_and(|pre| family.has_pre(pre));
    if let Some(name) = family.pre().filter(|_| !is_right) {
        metadata.set(PRE, name);
        repairs.push(format!("set {PRE} to {name}, the pre-tokenizer of {}", family.name));
    }
}

/// Whether EOS is missing, or is ordinary text.
pub fn needs_end(metadata: &Metadata) -> bool {
    let Some(tokens) = metadata.array(TOKENS) else { return false };
    let eos = metadata.u64(EOS).and_then(|id| text(tokens, id));
    eos.is_none_or(|eos| !looks_special(eos))
}

/// Makes the token by which the chat template ends an answer one of the end tokens of the model: EOS if that is
/// missing or is ordinary text, and EOT otherwise. Returns a sentence about the repair; `None` if the token is one
/// already, or if the file has another EOT.
pub fn fix_end(metadata: &mut Metadata, end: u32) -> Option<String> {
    const KEYS: [&str; 3] = [EOS, "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];
    if KEYS.iter().any(|key| metadata.u64(key) == Some(end.into())) {
        return None;
    }
    let key = if needs_end(metadata) { EOS } else { KEYS[1] };
    if key == KEYS[1] && metadata.get(key).is_some() {
        return None;
    }
    metadata.set(key, end);
    Some(format!("set {key} to {end}, which ends answers in the chat template"))
}
