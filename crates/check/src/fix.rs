//! Repairs that have one right answer.

use gguf::{
    Array, FILE_TYPES, Metadata, QUANTIZATION_VERSION, RawHeader, TensorInfo, TensorType, ValueType,
};

/// Repairs what is wrong in a header and can only be meant in one way, and says what it did, one
/// sentence each:
///
/// - a missing or non-integer `general.quantization_version` where tensors are quantized;
/// - a `general.file_type` whose type no matrix has, where all matrices but the embeddings have
///   another one that a single file type stands for;
/// - scores and token types of other lengths than the vocabulary, or of other element types;
/// - special tokens that are not typed as control tokens.
pub fn fix(draft: &mut RawHeader) -> Vec<String> {
    let mut done = Vec::new();
    quantization_version(draft, &mut done);
    file_type(draft, &mut done);
    per_token(&mut draft.metadata, &mut done);
    special_tokens(&mut draft.metadata, &mut done);
    done
}

fn quantization_version(draft: &mut RawHeader, done: &mut Vec<String>) {
    const KEY: &str = "general.quantization_version";
    let quantized = draft.tensors.iter().any(|tensor| tensor.tensor_type.is_quantized());
    if quantized && draft.metadata.u64(KEY).is_none() {
        draft.metadata.set(KEY, QUANTIZATION_VERSION);
        done.push(format!("set {KEY} to {QUANTIZATION_VERSION}"));
    }
}

fn file_type(draft: &mut RawHeader, done: &mut Vec<String>) {
    const KEY: &str = "general.file_type";
    let Some(main) = common_type(&draft.tensors) else { return };
    let has = |ty| draft.tensors.iter().any(|tensor| tensor.tensor_type == ty);
    let stated = draft.metadata.u64(KEY).map(gguf::file_type);
    match stated {
        // Not stated: nobody asked.
        None => return,
        Some(Some(stated)) if has(stated.main) => return,
        Some(_) => {}
    }
    let mut candidates = FILE_TYPES.iter().filter(|file_type| file_type.main == main);
    if let (Some(only), None) = (candidates.next(), candidates.next()) {
        draft.metadata.set(KEY, only.id);
        done.push(format!("set {KEY} to {} ({})", only.id, only.name));
    }
}

/// The type of all matrices within blocks, if they have one in common.
fn common_type(tensors: &[TensorInfo]) -> Option<TensorType> {
    let is_matrix =
        |tensor: &&TensorInfo| tensor.shape.len() > 1 && tensor.name.starts_with("blk.");
    let mut types = tensors
        .iter()
        .filter(is_matrix)
        // Routers stay F32 in every mix.
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

fn tokens(metadata: &Metadata) -> Option<usize> {
    let tokens = metadata.array(TOKENS)?;
    // Each of them takes bytes, so their number fits memory.
    (tokens.element_type() == ValueType::String).then_some(tokens.len() as usize)
}

fn per_token(metadata: &mut Metadata, done: &mut Vec<String>) {
    let Some(len) = tokens(metadata) else { return };
    if let Some(scores) = metadata.array(SCORES)
        && (scores.len() != len as u64 || scores.element_type() != ValueType::F32)
    {
        let mut values: Vec<f32> = scores
            .iter()
            .take(len)
            .map(|value| value.to_f64().or(value.to_i64().map(|v| v as f64)).unwrap_or(0.0) as f32)
            .collect();
        values.resize(len, 0.0);
        done.push(format!("made {SCORES} {len} numbers, one per token"));
        metadata.set(SCORES, Array::from(&values[..]));
    }
    if let Some(types) = metadata.array(TOKEN_TYPES)
        && (types.len() != len as u64 || types.element_type() != ValueType::I32)
    {
        let of = |value: gguf::Value| value.to_i64().and_then(|v| i32::try_from(v).ok());
        let mut values: Vec<i32> =
            types.iter().take(len).map(|value| of(value).unwrap_or(NORMAL)).collect();
        values.resize(len, NORMAL);
        done.push(format!("made {TOKEN_TYPES} {len} numbers, one per token"));
        metadata.set(TOKEN_TYPES, Array::from(&values[..]));
    }
}

/// Where a model begins and ends a text is never part of the text.
fn special_tokens(metadata: &mut Metadata, done: &mut Vec<String>) {
    let Some(types) = metadata.array(TOKEN_TYPES).and_then(Array::to_i64s) else { return };
    let mut types: Vec<i32> = types.into_iter().map(|v| v.try_into().unwrap_or(NORMAL)).collect();
    let mut changed = false;
    for name in ["bos", "eos"] {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = metadata.u64(&key).and_then(|id| usize::try_from(id).ok()) else { continue };
        if let Some(ty) = types.get_mut(id).filter(|ty| **ty == NORMAL) {
            *ty = CONTROL;
            changed = true;
            done.push(format!("typed token {id} ({name}) as control"));
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

    fn draft() -> RawHeader {
        let mut draft = RawHeader::default();
        let metadata = &mut draft.metadata;
        metadata.set("general.file_type", 15u32);
        metadata.set(TOKENS, Array::from_strings(["a", "b", "c"]));
        metadata.set(SCORES, Array::from(&[1u8][..]));
        metadata.set(TOKEN_TYPES, Array::from(&[1i32, 1, 1, 6][..]));
        metadata.set("tokenizer.ggml.eos_token_id", 2u32);
        draft.tensors.push(TensorInfo {
            name: "blk.0.attn_q.weight".into(),
            shape: Shape::new(&[32, 2]).unwrap(),
            tensor_type: TensorType::Q8_0,
            offset: 0,
        });
        draft
    }

    #[test]
    fn what_can_only_be_meant_in_one_way_is_repaired() {
        let mut draft = draft();
        assert_eq!(fix(&mut draft).len(), 5);
        let metadata = &draft.metadata;
        assert_eq!(metadata.u64("general.quantization_version"), Some(2));
        assert_eq!(metadata.u64("general.file_type"), Some(7));
        assert_eq!(metadata.array(SCORES).unwrap().to_f64s(), Some(vec![1.0, 0.0, 0.0]));
        assert_eq!(metadata.array(TOKEN_TYPES).unwrap().to_i64s(), Some(vec![1, 1, 3]));
        assert_eq!(fix(&mut draft), Vec::<String>::new());
    }

    #[test]
    fn what_is_right_or_ambiguous_stays() {
        let mut draft = draft();
        fix(&mut draft);
        for (ty, stated) in [(TensorType::Q4_K, 12u32), (TensorType::Q8_0, 7)] {
            draft.tensors[0].tensor_type = ty;
            draft.metadata.set("general.file_type", stated);
            let before = draft.clone();
            assert_eq!(fix(&mut draft), Vec::<String>::new());
            assert_eq!(draft, before);
        }
    }
}
