//! Writer of safetensors files: one file, or several with an index.
//!
//! The header has the offsets of all tensors, so several threads write chunks of rows at their final offsets.

use std::path::Path;

use gguf::{Error, TensorType};
use gguf_pipeline::{Tensor, parallel};
use gguf_store::{AtomicFile, ClosedOutput, Overwrite, Progress};
use serde_json::{Map, Value, json};

/// File with the shard of each tensor.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// Approximate number of elements of a work item.
const CHUNK: u64 = 128 * 1024;

/// Returns the safetensors name of a type; `None` if it has none.
fn header_name(ty: TensorType) -> Option<&'static str> {
    Some(match ty {
        TensorType::F64 => "F64",
        TensorType::F32 => "F32",
        TensorType::F16 => "F16",
        TensorType::BF16 => "BF16",
        TensorType::I64 => "I64",
        TensorType::I32 => "I32",
        TensorType::I16 => "I16",
        TensorType::I8 => "I8",
        _ => return None,
    })
}

/// Returns the torch name of a type, for `config.json`.
pub(super) fn torch_name(ty: TensorType) -> &'static str {
    match ty {
        TensorType::F16 => "float16",
        TensorType::BF16 => "bfloat16",
        _ => "float32",
    }
}

/// Returns the index ranges of the tensors of each shard: as many as fit into `most` bytes, in order.
pub(crate) fn shards(tensors: &[(Tensor, TensorType)], most: u64) -> Vec<std::ops::Range<usize>> {
    let (mut shards, mut first, mut bytes) = (Vec::new(), 0, 0u64);
    for (i, (tensor, ty)) in tensors.iter().enumerate() {
        let len = ty.byte_len(&tensor.shape).unwrap_or(0);
        if i > first && bytes.saturating_add(len) > most {
            shards.push(first..i);
            (first, bytes) = (i, 0);
        }
        bytes = bytes.saturating_add(len);
    }
    shards.push(first..tensors.len());
    shards
}

/// Returns the file name of a shard in Hugging Face's form.
pub(crate) fn shard_name(index: usize, count: usize) -> String {
    match count {
        1 => "model.safetensors".to_owned(),
        _ => format!("model-{:05}-of-{count:05}.safetensors", index + 1),
    }
}

/// Returns the content of [`INDEX`].
pub(crate) fn index(
    tensors: &[(Tensor, TensorType)],
    shards: &[std::ops::Range<usize>],
) -> Vec<u8> {
    let total: u64 = tensors.iter().filter_map(|(t, ty)| ty.byte_len(&t.shape)).sum();
    let mut map = Map::new();
    for (i, shard) in shards.iter().enumerate() {
        for (tensor, _) in &tensors[shard.clone()] {
            map.insert(tensor.name.clone(), shard_name(i, shards.len()).into());
        }
    }
    let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
    format!("{index:#}\n").into_bytes()
}

/// Writes the tensors to the file at `path`, which appears there when it is complete and replaces
/// what `overwrite` lets it.
///
/// A type that is not the stored one is converted to. With `raw`, quantized data are copied as they
/// are: as bytes (`U8`, a row of blocks per row), with the type of each in the file's metadata.
///
/// `progress` is called from many threads with the number of bytes just written; `Break` from it
/// ends the work.
///
/// # Errors
/// If data cannot be read, have no codec or no name in this format, or the file cannot be written.
pub fn write(
    path: &Path,
    tensors: &[(Tensor, TensorType)],
    raw: bool,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let bytes = |(tensor, ty): &(Tensor, TensorType)| {
        let ty = if raw { tensor.stored_type } else { *ty };
        ty.byte_len(&tensor.shape)
    };
    progress.begin("writing", tensors.iter().filter_map(bytes).sum());
    complete(path, tensors, raw, overwrite, progress)?.commit()
}

/// As [`write`](fn@write), up to the moment in which the file gets its name.
pub(super) fn complete(
    path: &Path,
    tensors: &[(Tensor, TensorType)],
    raw: bool,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<ClosedOutput, Error> {
    let types: Vec<TensorType> =
        tensors.iter().map(|(tensor, ty)| if raw { tensor.stored_type } else { *ty }).collect();
    let (header, starts, len) = header(tensors, &types)?;
    let output = AtomicFile::create(path, overwrite)?;
    output.set_len(len)?;
    output.write_at(&header, 0)?;
    let chunks: Vec<(usize, u64, u64)> = tensors
        .iter()
        .enumerate()
        .flat_map(|(i, (tensor, _))| {
            let at_once = CHUNK.checked_div(tensor.shape.row_len()).unwrap_or(1).max(1);
            let at_once = at_once.next_multiple_of(tensor.rows_per_block());
            let rows = if tensor.shape.row_len() == 0 { 0 } else { tensor.rows() };
            (0..rows)
                .step_by(at_once as usize)
                .map(move |first| (i, first, at_once.min(rows - first)))
        })
        .collect();
    parallel::map(chunks.len(), |c| {
        let (i, first, rows) = chunks[c];
        let tensor = &tensors[i].0;
        let bytes = converted(tensor, types[i], first, rows)?;
        let row_bytes = bytes.len() as u64 / rows;
        output.write_at(&bytes, starts[i] + first * row_bytes)?;
        progress.step(bytes.len() as u64)
    })?;
    output.close()
}

/// The header with its length before it, where each tensor begins, and the length of the file.
fn header(
    tensors: &[(Tensor, TensorType)],
    types: &[TensorType],
) -> Result<(Vec<u8>, Vec<u64>, u64), Error> {
    let (mut entries, mut blocks, mut offsets) = (Map::new(), Map::new(), Vec::new());
    let mut end = 0u64;
    for ((tensor, _), ty) in tensors.iter().zip(types) {
        let refuse = || {
            let what = format!("tensor `{}` cannot be {ty} in a safetensors file", tensor.name);
            Error::request("export-type", what, "export it as f32, f16 or bf16")
        };
        let len = ty.byte_len(&tensor.shape).ok_or_else(refuse)?;
        let mut shape: Vec<u64> = tensor.shape.iter().rev().copied().collect();
        let dtype = match header_name(*ty) {
            Some(name) => name,
            None => {
                let row = ty.byte_len(&[tensor.shape.row_len()]).ok_or_else(refuse)?;
                if let Some(last) = shape.last_mut() {
                    *last = row;
                }
                blocks.insert(tensor.name.clone(), Value::from(ty.name()));
                "U8"
            }
        };
        let offset = end;
        end = end.checked_add(len).ok_or_else(refuse)?;
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [offset, end] });
        if entries.insert(tensor.name.clone(), entry).is_some() {
            let what = format!("there are two tensors `{}`", tensor.name);
            let help = "export the tensors under their GGUF names";
            return Err(Error::request("export-tensor-duplicate", what, help));
        }
        offsets.push(offset);
    }
    let mut texts = Map::new();
    texts.insert("format".into(), "pt".into());
    texts.extend(blocks.into_iter().map(|(name, ty)| (format!("gguf_kit.type.{name}"), ty)));
    let mut all = Map::new();
    all.insert("__metadata__".into(), texts.into());
    all.extend(entries);
    let mut json = Value::from(all).to_string();
    // Data begin at a multiple of eight bytes.
    json.extend(std::iter::repeat_n(' ', json.len().next_multiple_of(8) - json.len()));
    let start = 8 + json.len() as u64;
    let header = [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
    let starts = offsets.into_iter().map(|offset| start + offset).collect();
    Ok((header, starts, start + end))
}

/// Rows of a tensor in another type.
fn converted(tensor: &Tensor, ty: TensorType, first: u64, rows: u64) -> Result<Vec<u8>, Error> {
    let mut stored = Vec::new();
    tensor.read_rows(first, rows, &mut stored)?;
    if ty == tensor.stored_type {
        return Ok(stored);
    }
    let failed = |fault: gguf_quant::CodecError| Error::weights(&tensor.name, fault.to_string());
    let elements = rows * tensor.shape.row_len();
    let mut values = vec![0.0; elements as usize];
    gguf_quant::decode_row(tensor.stored_type, &stored, &mut values).map_err(failed)?;
    let mut bytes = vec![0; ty.byte_len(&[elements]).unwrap_or(0) as usize];
    gguf_quant::encode_row(ty, &values, None, &mut bytes).map_err(failed)?;
    Ok(bytes)
}
