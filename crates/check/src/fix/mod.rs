//! Repairs of faults that have only one possible correction.

mod tokens;

use gguf::{FILE_TYPES, QUANTIZATION_VERSION, RawHeader, TensorInfo, TensorType};

use crate::rules::shapes;
use crate::rules::tokenizer::vocabulary_family::Family;

pub use tokens::{fix_end, needs_end};

/// Repairs the unambiguous faults of a header and returns a sentence about each repair:
///
/// - a missing or non-integer `general.quantization_version` of a quantized model;
/// - a `general.file_type` whose tensor type no matrix has, if all matrices except the embeddings
///   have a type that only one file type stands for;
/// - scores and token types with a wrong length or element type;
/// - special tokens whose type is not control, and byte tokens whose type is not byte;
/// - padding tokens that the vocabulary lacks;
/// - the pre-tokenizer, `add_bos_token`, BOS and the base frequency of RoPE if the vocabulary implies them;
/// - numbers of experts and KV heads that contradict the shapes of all tensors.
///
/// Only faults with one right answer are repaired: an id that names ordinary text, for example, stays.
pub fn fix(header: &mut RawHeader) -> Vec<String> {
    let mut repairs = Vec::new();
    quantization_version(header, &mut repairs);
    file_type(header, &mut repairs);
    counts(header, &mut repairs);
    rope_base(header, &mut repairs);
    tokens::fix(header, &mut repairs);
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

/// Sets counts to those that the shapes of all tensors state.
fn counts(header: &mut RawHeader, repairs: &mut Vec<String>) {
    for (key, count, what) in shapes::wrong_counts(header) {
        let Ok(count) = u32::try_from(count) else { continue };
        repairs.push(format!("set {key} to {count}, the number of {what} of the tensors"));
        header.metadata.set(key, count);
    }
}

/// Sets the base frequency of RoPE if the vocabulary implies it.
fn rope_base(header: &mut RawHeader, repairs: &mut Vec<String>) {
    let Some(name) = header.metadata.architecture().map(str::to_owned) else { return };
    let Some((architecture, base)) = Family::of(&header.metadata).and_then(|one| one.rope_base)
    else {
        return;
    };
    let has = |suffix: &str| header.metadata.get(&format!("{name}.{suffix}")).is_some();
    if architecture == name && !has("rope.freq_base") && !has("rope.scaling.type") {
        let key = format!("{name}.rope.freq_base");
        repairs.push(format!("set {key} to {base}"));
        header.metadata.set(key, base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::{Array, Shape};

    const TOKENS: &str = "tokenizer.ggml.tokens";
    const SCORES: &str = "tokenizer.ggml.scores";
    const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";

    fn header() -> RawHeader {
        let mut header = RawHeader::default();
        let metadata = &mut header.metadata;
        metadata.set("general.file_type", 15u32);
        metadata.set(TOKENS, Array::from_strings(["a", "b", "</s>"]));
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
