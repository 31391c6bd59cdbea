//! Builders of checkpoint files, and readers of their tensors.

use std::path::Path;

use gguf_checkpoint::{Checkpoint, Entry};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Tensor to write: name, safetensors type, shape, bytes.
pub struct Tensor(pub String, pub &'static str, pub Vec<u64>, pub Vec<u8>);

/// Creates a checkpoint with these tensors and this `quantization_config`.
pub fn checkpoint(quantization: &Value, tensors: &[Tensor]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({ "quantization_config": quantization });
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    write_safetensors(&dir.path().join("model.safetensors"), tensors);
    dir
}

pub fn write_safetensors(path: &Path, tensors: &[Tensor]) {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for Tensor(name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        let info = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        header.insert(name.clone(), info);
        data.extend_from_slice(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    std::fs::write(path, file).unwrap();
}

/// Reads the bytes of an entry, at once and in pieces of odd sizes, and asserts that both are equal.
pub fn bytes(checkpoint: &Checkpoint, entry: &Entry) -> Vec<u8> {
    let dims: Vec<u64> = entry.shape.iter().rev().copied().collect();
    let mut whole = vec![0; entry.tensor_type.byte_len(&dims).unwrap() as usize];
    let source = &checkpoint.files[entry.file].source;
    source.read_at(&mut whole, entry.offset).unwrap();
    for piece in [1, 7, 1001] {
        let mut pieces = vec![0; whole.len().min(5000)];
        for (i, buffer) in pieces.chunks_mut(piece).enumerate() {
            source.read_at(buffer, entry.offset + (i * piece) as u64).unwrap();
        }
        assert_eq!(pieces, whole[..pieces.len()], "{} in pieces of {piece}", entry.name);
    }
    whole
}

/// Returns the values of a tensor.
pub fn floats(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    let entry = checkpoint.entries.iter().find(|entry| entry.name == name);
    let entry = entry.unwrap_or_else(|| panic!("no `{name}` among {:?}", checkpoint.entries));
    let mut values = vec![0.0; entry.shape.iter().product::<u64>() as usize];
    gguf_quant::decode_row(entry.tensor_type, &bytes(checkpoint, entry), &mut values).unwrap();
    values
}

pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn f16s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| half::f16::from_f32(*value).to_le_bytes()).collect()
}

/// Returns pseudo-random numbers below `end`.
pub fn numbers(n: usize, end: u32) -> Vec<u32> {
    let mut state = n as u32 ^ end.rotate_left(16);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % end
    };
    (0..n).map(|_| next()).collect()
}

/// Returns scales that F16 represents exactly.
pub fn scales(n: usize) -> Vec<f32> {
    numbers(n, 2048).iter().map(|x| (*x as f32 + 1.0) / 65536.0).collect()
}
