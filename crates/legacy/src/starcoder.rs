//! StarCoder in GPT-2 files: its single KV head is stored once per query head.
//!
//! ```text
//! stored c_attn rows   queries | keys, once per head | values, once per head
//! output rows          queries | keys                | values
//! ```

use std::path::Path;
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;

use super::file::SourceRange;
use super::parts::JoinedTensor;

const MATRIX: &str = "/attn/c_attn/w";
const VECTOR: &str = "/attn/c_attn/b";

/// Whether keys and values are equal in all heads of every layer.
pub(super) fn has_repeated_kv(tensors: &[JoinedTensor], heads: u32) -> Result<bool, Error> {
    if heads < 2 {
        return Ok(false);
    }
    let mut any = false;
    for tensor in tensors.iter().filter(|tensor| is_fused(tensor)) {
        any = true;
        if !has_repeated_heads(tensor, heads.into())? {
            return Ok(false);
        }
    }
    Ok(any)
}

/// Keeps one KV head.
pub(super) fn merge_kv_heads(
    path: &Path,
    tensors: &mut [JoinedTensor],
    heads: u32,
) -> Result<(), Error> {
    let heads = u64::from(heads);
    for tensor in tensors.iter_mut().filter(|tensor| is_fused(tensor)) {
        if !has_repeated_heads(tensor, heads)? {
            let what = format!("the KV heads of `{}` are not equal", tensor.name);
            let help = "the model is not a StarCoder; try --architecture gpt2";
            return Err(Error::input("legacy-misfit", path, what, help));
        }
        let head = tensor.bytes.byte_len() / 3 / heads;
        let all = head * heads;
        let range = |start, len| SourceRange { source: Arc::clone(&tensor.bytes), start, len };
        tensor.bytes = Arc::new(Concatenated(vec![range(0, all + head), range(2 * all, head)]));
        if let Some(rows) = tensor.dims.last_mut() {
            *rows = *rows / 3 / heads * (heads + 2);
        }
    }
    Ok(())
}

fn is_fused(tensor: &JoinedTensor) -> bool {
    tensor.name.ends_with(MATRIX) || tensor.name.ends_with(VECTOR)
}

fn has_repeated_heads(tensor: &JoinedTensor, heads: u64) -> Result<bool, Error> {
    let rows = tensor.dims.last().copied().unwrap_or(0);
    if !rows.is_multiple_of(3 * heads) {
        return Ok(false);
    }
    let third = tensor.bytes.byte_len() / 3;
    let head = third / heads;
    let (mut first, mut other) = (vec![0; head as usize], vec![0; head as usize]);
    for start in [third, 2 * third] {
        tensor.bytes.read_at(&mut first, start)?;
        for i in 1..heads {
            tensor.bytes.read_at(&mut other, start + i * head)?;
            if first != other {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Concatenated byte ranges.
struct Concatenated(Vec<SourceRange>);

impl Source for Concatenated {
    fn byte_len(&self) -> u64 {
        self.0.iter().map(|range| range.len).sum()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        for range in &self.0 {
            if offset < range.len {
                let len = (range.len - offset).min(buffer.len() as u64);
                let (run, rest) = buffer.split_at_mut(len as usize);
                range.read_at(run, offset)?;
                buffer = rest;
                offset = 0;
            } else {
                offset -= range.len;
            }
        }
        Ok(())
    }
}
