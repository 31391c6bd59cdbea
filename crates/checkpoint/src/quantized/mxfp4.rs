//! MXFP4: `X_blocks` and `X_scales` (experts of gpt-oss), `X_packed` and `X_scale`
//! (compressed-tensors), or `weight` and `scale` (experts of DeepSeek 4).
//!
//! ```text
//! X_blocks  U8 [..., rows, blocks, 16]    16 bytes: | x[2*j + 1] | x[2*j] |     j in 0..16
//! X_scales  U8 [..., rows, blocks]        a power of two, 2^(e - 127)
//! ```
//!
//! GGUF's MXFP4 has the same values in another order, so the conversion is lossless. The tensor is
//! named `X.weight`, or X if that ends in `weight`; its last dimension is the inputs.

use gguf::TensorType;

use super::method::Method;
use super::{Content, Matrix, MatrixError, TensorSet};
use crate::dtype::Dtype;
use crate::raw::Raw;
use crate::rows::Rows;

pub(super) const METHOD: Method =
    Method { name: "MXFP4", names: &["mxfp4"], file: None, read: |_| Ok(Box::new(matrix)) };

/// Values per block, and their length in bytes.
const BLOCK: u64 = 32;
const BLOCK_BYTES: u64 = 16;

/// Reads the matrix whose packed part is `main`, as stored by gpt-oss.
fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix("_blocks") else { return Ok(None) };
    set.take(&main.name);
    let scales = set.need(&format!("{stem}_scales"))?;
    let [outer @ .., BLOCK_BYTES] = &main.shape[..] else {
        return Err(MatrixError::Parts(format!(
            "has the shape {:?}; expected blocks of 16 bytes",
            main.shape
        )));
    };
    let name = if stem.ends_with("weight") { stem.to_owned() } else { format!("{stem}.weight") };
    build(name, main, scales, outer).map(Some)
}

/// Reads the matrix whose packed part is `main`, as stored by compressed-tensors.
pub(super) fn packed_matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(name) = main.name.strip_suffix("_packed") else { return Ok(None) };
    with_scales(set, main, name, &format!("{name}_scale"))
}

/// Reads the matrix whose packed part is `main`, as stored by DeepSeek.
pub(super) fn scaled_matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix("weight") else { return Ok(None) };
    with_scales(set, main, &main.name, &format!("{stem}scale"))
}

/// Reads a matrix of bytes with E8M0 scales of the given name; `None` if it has another form.
fn with_scales(
    set: &TensorSet,
    main: &Raw,
    name: &str,
    scale_name: &str,
) -> Result<Option<Matrix>, MatrixError> {
    let is_exponent = |scales: &&Raw| matches!(scales.dtype, Dtype::U8 | Dtype::F8E8M0);
    let is_byte = matches!(main.dtype, Dtype::U8 | Dtype::I8);
    if !is_byte || !set.by_name.get(scale_name).is_some_and(is_exponent) {
        return Ok(None);
    }
    set.take(&main.name);
    let scales = set.need(scale_name)?;
    let [outer @ .., bytes] = &main.shape[..] else {
        return Err(MatrixError::Parts("is not a matrix".to_owned()));
    };
    let blocks = [outer, &[bytes / BLOCK_BYTES]].concat();
    build(name.to_owned(), main, scales, &blocks).map(Some)
}

fn build(name: String, main: &Raw, scales: &Raw, blocks: &[u64]) -> Result<Matrix, MatrixError> {
    let [outer @ .., blocks_per_row] = blocks else {
        return Err(MatrixError::Parts("is a single block".to_owned()));
    };
    let bytes = scales.elements().checked_mul(BLOCK_BYTES);
    if [main.dtype, scales.dtype].iter().any(|dtype| dtype.bytes() != 1)
        || scales.shape != blocks
        || bytes != Some(main.elements())
        || *blocks_per_row == 0
    {
        let what = format!("does not match its scales of shape {:?}", scales.shape);
        return Err(MatrixError::Parts(what));
    }
    let shape = [outer, &[blocks_per_row * BLOCK]].concat();
    let rows =
        Mxfp4 { weight: main.clone(), scales: scales.clone(), blocks_per_row: *blocks_per_row };
    Ok(Matrix { name, shape, content: Content::Rows(TensorType::MXFP4, Box::new(rows)) })
}

struct Mxfp4 {
    weight: Raw,
    scales: Raw,
    blocks_per_row: u64,
}

impl Rows for Mxfp4 {
    fn count(&self) -> u64 {
        self.scales.elements() / self.blocks_per_row
    }

    fn row_bytes(&self) -> u64 {
        self.blocks_per_row * (1 + BLOCK_BYTES)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let n = out.len() as u64 / (1 + BLOCK_BYTES);
        let start = first * self.blocks_per_row;
        let scales = self.scales.bytes(start, n)?;
        let weights = self.weight.bytes(start * BLOCK_BYTES, n * BLOCK_BYTES)?;
        let blocks = weights.as_chunks::<{ BLOCK_BYTES as usize }>().0.iter().zip(scales);
        for ((bytes, scale), out) in blocks.zip(out.as_chunks_mut::<17>().0) {
            let nibble = |i: usize| bytes[i / 2] >> (4 * (i % 2)) & 15;
            out[0] = scale;
            out[1..]
                .iter_mut()
                .zip(0..)
                .for_each(|(out, j)| *out = nibble(j) | nibble(j + 16) << 4);
        }
        Ok(())
    }
}
