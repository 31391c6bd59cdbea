//! Repairs of faults that have only one possible correction.

use gguf::{
    Array, FILE_TYPES, Metadata, QUANTIZATION_VERSION, RawHeader, TensorInfo, TensorType, ValueType,
};

/// Repairs the unambiguous faults of a header and returns a sentence about each repair:
///
/// - a missing or non-integer `general.quantization_version` of a quantized model;
/// - a `general.file_type` whose tensor type no matrix has, if all matrices except the embeddings
///   have a type that only one file type stands for;
/// - scores and token types with a wrong length or element type;
/// - special tokens whose type is not control.
pub fn fix(header: &mut RawHeader) -> Vec<String> {
    let mut repairs = Vec::new();
    quantization_version(header, &mut repairs);
    file_type(header, &mut repairs);
    per_token(&mut header.metadata, &mut repairs);
    special_tokens(&mut header.metadata, &mut repairs);
    repairs
}

fn quantization_version(header: &mut RawHeader, repairs: &mut Vec<String>) {
    const KEY: &str = "general.quantization_version";
    let quantized = header.tensors.iter().any(|tensor| tensor.tensor_type.is_quantized());
    if quantized && header.metadata.u64(KEY).is_none() {
        header.metadata.set(KEY, QUANTIZATION_VERSION);
        repairs.push(format!("set {KEY} to {QUANTIZATION_VERSION}"));
    }
}

fn file_type(header: &mut RawHeader, repairs: &mut Vec<String>) {
    const KEY: &str = "general.file_type";
    let Some(main) = common_type(&header.tensors) else { return };
    let has = |ty| header.tensors.iter().any(|tensor| tensor.tensor_type == ty);
    let stated = header.metadata.u64(KEY).map(gguf::file_type);
    match stated {
        // The key is optional.
        None => return,
        Some(Some(stated)) if has(stated.main) => return,
        Some(_) => {}
    }
    let mut candidates = FILE_TYPES.iter().filter(|file_type| file_type.main == main);
    if let (Some(only), None) = (candidates.next(), candidates.next()) {
        header.metadata.set(KEY, only.id);
        repairs.push(format!("set {KEY} to {} ({})", only.id, only.name));
    }
}

/// Returns the type of all matrices within layers, if they have the same type.
fn common_type(tensors: &[TensorInfo]) -> Option<TensorType> {
    let is_matrix =
        |tensor: &&TensorInfo| tensor.shape.len() > 1 && tensor.name.starts_with("blk.");
    let mut types = tensors
        .iter()
        .filter(is_matrix)
        // Routers stay F32 in every quantization type.
        .filter(|tensor| !tensor.name.contains("ffn_gate_inp"))
        .map(|tensor| tensor.tensor_type);
    let first = types.next()?;
    types.all(|ty| ty == first).then_some(first)
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";
/// `LLAMA_TOKEN_TYPE_NORMAL` and `_CONTROL`.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

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
    if let Some(types) = metadata.array(TOKEN_TYPES)
        && (types.len() != len as u64 || types.element_type() != ValueType::I32)
    {
        let to_i32 = |value: gguf::Value| value.to_i64().and_then(|v| i32::try_from(v).ok());
        let mut values: Vec<i32> =
            types.iter().take(len).map(|value| to_i32(value).unwrap_or(NORMAL)).collect();
        values.resize(len, NORMAL);
        repairs.push(format!("resized {TOKEN_TYPES} to {len} numbers, one per token"));
        metadata.set(TOKEN_TYPES, Array::from(&values[..]));
    }
}

/// Sets the type of BOS and EOS to control: they are never part of a text.
fn special_tokens(metadata: &mut Metadata, repairs: &mut Vec<String>) {
    let Some(types) = metadata.array(TOKEN_TYPES).and_then(Array::to_i64s) else { return };
    let mut types: Vec<i32> = types.into_iter().map(|v| v.try_into().unwrap_or(NORMAL)).collect();
    let mut changed = false;
    for name in ["bos", "eos"] {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = metadata.u64(&key).and_then(|id| usize::try_from(id).ok()) else { continue };
        if let Some(ty) = types.get_mut(id).filter(|ty| **ty == NORMAL) {
            *ty = CONTROL;
            changed = true;
            repairs.push(format!("set the type of token {id} ({name}) to control"));
        }
    }
    if changed {
        metadata.set(TOKEN_TYPES, Array::from(&types[..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Shape;

    fn header() -> RawHeader {
        let mut header = RawHeader::default();
        let metadata = &mut header.metadata;
        metadata.set("general.file_type", 15u32);
        metadata.set(TOKENS, Array::from_strings(["a", "b", "c"]));
        metadata.set(SCORES, Array::from(&[1u8][..]));
        metadata.set(TOKEN_TYPES, Array::from(&[1i32, 1, 1, 6][..]));
        metadata.set("tokenizer.ggml.eos_token_id", 2u32);
        header.tensors.push(TensorInfo {
            name: "blk.0.attn_q.weight".into(),
            shape: Shape::new(&[32, 2]).unwrap(),
            tensor_type: TensorType::Q8_0,
            offset: 0,
            opaque_len: None,
        });
        header
    }

    #[test]
    fn unambiguous_faults_are_repaired() {
        let mut header = header();
        assert_eq!(fix(&mut header).len(), 5);
        let metadata = &header.metadata;
        assert_eq!(metadata.u64("general.quantization_version"), Some(2));
        assert_eq!(metadata.u64("general.file_type"), Some(7));
        assert_eq!(metadata.array(SCORES).unwrap().to_f64s(), Some(vec![1.0, 0.0, 0.0]));
        assert_eq!(metadata.array(TOKEN_TYPES).unwrap().to_i64s(), Some(vec![1, 1, 3]));
        assert_eq!(fix(&mut header), Vec::<String>::new());
    }

    #[test]
    fn correct_or_ambiguous_values_stay() {
        let mut header = header();
        fix(&mut header);
        for (ty, stated) in [(TensorType::Q4_K, 12u32), (TensorType::Q8_0, 7)] {
            header.tensors[0].tensor_type = ty;
            header.metadata.set("general.file_type", stated);
            let before = header.clone();
            assert_eq!(fix(&mut header), Vec::<String>::new());
            assert_eq!(header, before);
        }
    }
}
