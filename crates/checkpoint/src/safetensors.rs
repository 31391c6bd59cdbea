//! Safetensors files: a JSON header, then the data of the tensors.

use std::path::Path;
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;
use safetensors::tensor::{Dtype as Foreign, Metadata};

use super::dtype::Dtype;
use super::json::described;
use super::raw::Raw;

/// Maximum length of a header, as in the safetensors library.
const MAX_HEADER: u64 = 100_000_000;

/// Length of the field before the header, which holds its length.
const PREFIX: u64 = 8;

const DAMAGED: &str = "the file is corrupt or truncated: download it again";

/// Reads the tensor directory of a file, in order of name.
///
/// # Errors
/// If it is truncated or not safetensors, or has an unknown element type.
pub(super) fn tensors(
    path: &Path,
    source: &Arc<dyn Source>,
    file: usize,
) -> Result<Vec<Raw>, Error> {
    let header = read_header(path, &**source)?;
    // Deserializing checks offsets, sizes and overlaps.
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|fault| {
        let what = format!("not a valid safetensors header: {}", described(&fault));
        Error::input("safetensors-damaged", path, what, DAMAGED)
    })?;
    let data_start = header.len() as u64 + PREFIX;
    let mut infos: Vec<_> = metadata.tensors().into_iter().collect();
    infos.sort_by(|a, b| a.0.cmp(&b.0));
    let data_len = infos.iter().map(|(_, info)| info.data_offsets.1).max().unwrap_or(0) as u64;
    let expected = data_start + data_len;
    if source.byte_len() != expected {
        let what = format!("has {} bytes; expected {expected}", source.byte_len());
        return Err(Error::input("safetensors-damaged", path, what, DAMAGED));
    }
    infos
        .into_iter()
        .map(|(name, info)| {
            let dtype = dtype(info.dtype).ok_or_else(|| {
                let what = format!("tensor `{name}` is stored as {:?}", info.dtype);
                let help = "this element type is not supported yet";
                Error::input("checkpoint-dtype", path, what, help)
            })?;
            Ok(Raw {
                name,
                shape: info.shape.iter().map(|&dim| dim as u64).collect(),
                dtype,
                file,
                source: source.clone(),
                offset: data_start + info.data_offsets.0 as u64,
            })
        })
        .collect()
}

/// Reads the header: JSON, padded with spaces.
fn read_header(path: &Path, source: &dyn Source) -> Result<Vec<u8>, Error> {
    let damaged = |what: String| Error::input("safetensors-damaged", path, what, DAMAGED);
    if source.byte_len() < PREFIX {
        return Err(damaged(format!("has only {} bytes", source.byte_len())));
    }
    let mut prefix = [0; 8];
    source.read_at(&mut prefix, 0)?;
    let len = u64::from_le_bytes(prefix);
    if len > MAX_HEADER || len + PREFIX > source.byte_len() {
        let what = format!(
            "the header of {len} bytes exceeds the {} bytes of the file",
            source.byte_len()
        );
        return Err(damaged(what));
    }
    let mut header = vec![0; len as usize];
    source.read_at(&mut header, PREFIX)?;
    Ok(header)
}

fn dtype(foreign: Foreign) -> Option<Dtype> {
    Some(match foreign {
        Foreign::F64 => Dtype::F64,
        Foreign::F32 => Dtype::F32,
        Foreign::F16 => Dtype::F16,
        Foreign::BF16 => Dtype::BF16,
        Foreign::F8_E4M3 => Dtype::F8E4M3,
        Foreign::F8_E5M2 => Dtype::F8E5M2,
        Foreign::F8_E8M0 => Dtype::F8E8M0,
        Foreign::I64 => Dtype::I64,
        Foreign::I32 => Dtype::I32,
        Foreign::I16 => Dtype::I16,
        Foreign::I8 => Dtype::I8,
        Foreign::U64 => Dtype::U64,
        Foreign::U32 => Dtype::U32,
        Foreign::U16 => Dtype::U16,
        Foreign::U8 => Dtype::U8,
        Foreign::BOOL => Dtype::Bool,
        _ => return None,
    })
}
