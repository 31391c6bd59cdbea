//! Comparison of two tensors: bytes, then values.

use gguf::Error;
use gguf_quant::Difference;
use gguf_store::{ModelTensor, Progress};
use rayon::prelude::*;

use super::Change;
use crate::hash::size_unknown;

/// Number of elements read at a time; a multiple of every block size.
const CHUNK: u64 = 256 * 1024;

/// Compares two tensors; returns `None` if shape, type and bytes are equal.
pub(super) fn compare(
    a: &ModelTensor,
    b: &ModelTensor,
    progress: &dyn Progress,
) -> Result<Option<Change>, Error> {
    let (in_a, in_b) = (&a.info, &b.info);
    if in_a.shape != in_b.shape {
        let (a, b) = ((in_a.tensor_type, in_a.shape), (in_b.tensor_type, in_b.shape));
        return Ok(Some(Change::Reshaped { a, b }));
    }
    if in_a.tensor_type == in_b.tensor_type && same(a, b, progress)? {
        return Ok(None);
    }
    let figures = difference(a, b, progress)?;
    Ok(Some(Change::Data { a: in_a.tensor_type, b: in_b.tensor_type, figures }))
}

/// Whether two tensors of the same size have equal bytes. Reads up to the first difference.
fn same(a: &ModelTensor, b: &ModelTensor, progress: &dyn Progress) -> Result<bool, Error> {
    const BYTES: u64 = 1 << 20;
    let len = a.info.byte_len().ok_or_else(|| size_unknown(a))?;
    // Data of unknown layout may be longer in one file.
    if b.info.byte_len() != Some(len) {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut first = 0;
    while first < len {
        let n = (len - first).min(BYTES);
        left.resize(n as usize, 0);
        right.resize(n as usize, 0);
        a.read_at(&mut left, first)?;
        b.read_at(&mut right, first)?;
        progress.step(n)?;
        if left != right {
            return Ok(false);
        }
        first += n;
    }
    Ok(true)
}

/// Returns the error statistics of two tensors of the same shape; `None` if one cannot be decoded.
///
/// Chunks are added in order, so that the result does not depend on the number of threads.
fn difference(
    a: &ModelTensor,
    b: &ModelTensor,
    progress: &dyn Progress,
) -> Result<Option<Difference>, Error> {
    if [a, b].iter().any(|tensor| tensor.info.tensor_type.block().is_none()) {
        return Ok(None);
    }
    let elements = a.info.shape.elements().ok_or_else(|| size_unknown(a))?;
    let parts = (0..elements.div_ceil(CHUNK)).into_par_iter().map_init(
        || (Vec::new(), Vec::new()),
        |(left, right), i| {
            let first = i * CHUNK;
            let n = (elements - first).min(CHUNK);
            let (a_type, b_type) = (a.info.tensor_type, b.info.tensor_type);
            read(a, first, n, left)?;
            read(b, first, n, right)?;
            progress.step(left.len() as u64)?;
            // Lengths fit, so the only error is that there is no codec.
            Ok(gguf_quant::difference(n, (a_type, left), (b_type, right)).ok())
        },
    );
    let parts: Vec<Option<Difference>> = parts.collect::<Result<_, Error>>()?;
    let mut sum = Difference::default();
    for part in parts {
        match part {
            Some(part) => sum.add(&part),
            None => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// Reads `n` elements from `first` on.
fn read(tensor: &ModelTensor, first: u64, n: u64, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let bytes = |elements| tensor.info.tensor_type.byte_len(&[elements]);
    let (start, len) = bytes(first).zip(bytes(n)).ok_or_else(|| size_unknown(tensor))?;
    buffer.resize(len as usize, 0);
    tensor.read_at(buffer, start)
}
