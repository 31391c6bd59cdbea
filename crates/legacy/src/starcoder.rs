//! StarCoder as a GPT-2 file: its one head of keys and values, written out for every head.
//!
//! ```text
//! rows of c_attn  all queries | the keys, once per head  | the values, once per head
//! become          all queries | the keys                 | the values
//! ```

use std::path::Path;
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;

use super::parts::JoinedTensor;
use super::read::Span;

const MATRIX: &str = "/attn/c_attn/w";
const VECTOR: &str = "/attn/c_attn/b";

/// Whether keys and values are the same in all of `heads` heads, in every layer.
pub(super) fn repeats(tensors: &[JoinedTensor], heads: u32) -> Result<bool, Error> {
    if heads < 2 {
        return Ok(false);
    }
    let mut any = false;
    for tensor in tensors.iter().filter(|tensor| is_fused(tensor)) {
        any = true;
        if !repeats_in(tensor, heads.into())? {
            return Ok(false);
        }
    }
    Ok(any)
}

/// Leaves one head of keys and values.
pub(super) fn undo(path: &Path, tensors: &mut [JoinedTensor], heads: u32) -> Result<(), Error> {
    let heads = u64::from(heads);
    for tensor in tensors.iter_mut().filter(|tensor| is_fused(tensor)) {
        if !repeats_in(tensor, heads)? {
            let what = format!("the heads of `{}` differ in their keys and values", tensor.name);
            let help = "it is no StarCoder: try --architecture gpt2";
            return Err(Error::input("legacy-misfit", path, what, help));
        }
        let head = tensor.bytes.byte_len() / 3 / heads;
        let all = head * heads;
        let span = |start, len| Span { source: Arc::clone(&tensor.bytes), start, len };
        tensor.bytes = Arc::new(Runs(vec![span(0, all + head), span(2 * all, head)]));
        if let Some(rows) = tensor.dims.last_mut() {
            *rows = *rows / 3 / heads * (heads + 2);
        }
    }
    Ok(())
}

fn is_fused(tensor: &JoinedTensor) -> bool {
    tensor.name.ends_with(MATRIX) || tensor.name.ends_with(VECTOR)
}

fn repeats_in(tensor: &JoinedTensor, heads: u64) -> Result<bool, Error> {
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

/// Several spans, one after the other.
struct Runs(Vec<Span>);

impl Source for Runs {
    fn byte_len(&self) -> u64 {
        self.0.iter().map(|span| span.len).sum()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        for span in &self.0 {
            if offset < span.len {
                let len = (span.len - offset).min(buffer.len() as u64);
                let (run, rest) = buffer.split_at_mut(len as usize);
                span.read_at(run, offset)?;
                buffer = rest;
                offset = 0;
            } else {
                offset -= span.len;
            }
        }
        Ok(())
    }
}
