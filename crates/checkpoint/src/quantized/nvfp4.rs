//! NVFP4: `X`, `X_scale` and `X_scale_2` (ModelOpt), or `X_packed`, `X_scale` and
//! `X_global_scale` (compressed-tensors), where X is `model...weight`.
//!
//! ```text
//! X, X_packed       U8 [..., out, in / 2]    | x[2*j + 1] | x[2*j] |
//! X_scale           F8_E4M3 [..., out, in / 16]
//! X_scale_2         F32, one for all or one per expert
//! X_global_scale    F32, likewise; a divisor
//!
//! w = x * (scale * scale_2)        w = x * (scale / global_scale)
//! ```
//!
//! x is an E2M1 float (OCP Microscaling Formats). GGUF's NVFP4 has no scale for the whole tensor,
//! so it is lossless only if every scale times that scale is representable in E4M3.

use gguf::TensorType;

use super::{Content, Matrix, MatrixError, TensorSet, put_floats, rows_and_columns};
use crate::dtype::{Dtype, e4m3};
use crate::raw::Raw;
use crate::rows::Rows;

/// Values per scale.
const GROUP: u64 = 16;

/// Values of the codes 0 to 7; codes 8 to 15 are negative.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Reads the matrix whose packed part is `main`, as stored by ModelOpt.
pub(super) fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let scale_name = format!("{}_scale", main.name);
    if main.dtype != Dtype::U8 || !set.by_name.contains_key(&*scale_name) {
        return Ok(None);
    }
    set.take(&main.name);
    let scales = set.need(&scale_name)?;
    let global = match set.take(&format!("{}_scale_2", main.name)) {
        Some(global) => GlobalScale::read(global, main, false)?,
        None => GlobalScale(vec![1.0], false),
    };
    build(&main.name, main, scales, global).map(Some)
}

/// Reads the matrix whose packed part is `main`, as stored by compressed-tensors.
pub(super) fn packed_matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(name) = main.name.strip_suffix("_packed") else { return Ok(None) };
    let scale_name = format!("{name}_scale");
    let is_e4m3 = set.by_name.get(&*scale_name).is_some_and(|raw| raw.dtype == Dtype::F8E4M3);
    if main.dtype != Dtype::U8 || !is_e4m3 {
        return Ok(None);
    }
    set.take(&main.name);
    let scales = set.need(&scale_name)?;
    let global = GlobalScale::read(set.need(&format!("{name}_global_scale"))?, main, true)?;
    build(name, main, scales, global).map(Some)
}

/// Per-tensor scales of the experts, and whether they are divisors.
struct GlobalScale(Vec<f32>, bool);

impl GlobalScale {
    /// Reads the scales of the matrices in `main`.
    fn read(raw: &Raw, main: &Raw, divides: bool) -> Result<Self, MatrixError> {
        let experts: u64 = main.shape.iter().rev().skip(2).product();
        let count = raw.elements();
        if count != 1 && count != experts {
            return Err(MatrixError::Parts(format!("has {count} values in `{}`", raw.name)));
        }
        Ok(Self(raw.floats(0, count)?, divides))
    }

    /// Multiplies the scale of a group by that of its matrix.
    fn apply(&self, scale: f32, expert: u64) -> f32 {
        let global = self.0[(expert as usize).min(self.0.len() - 1)];
        if self.1 { scale / global } else { scale * global }
    }
}

fn build(name: &str, main: &Raw, scales: &Raw, global: GlobalScale) -> Result<Matrix, MatrixError> {
    let (rows, bytes) = rows_and_columns(&main.shape)?;
    let groups = bytes * 2 / GROUP;
    let expected = [&main.shape[..main.shape.len() - 1], &[groups]].concat();
    let experts: u64 = main.shape.iter().rev().skip(2).product();
    if scales.dtype != Dtype::F8E4M3 || scales.shape != expected || groups * GROUP != bytes * 2 {
        let what = format!("does not match its scales of shape {:?}", scales.shape);
        return Err(MatrixError::Parts(what));
    }
    let shape = [&main.shape[..main.shape.len() - 1], &[bytes * 2]].concat();
    let rows_per_expert = rows / experts.max(1);
    let mut rows = Nvfp4 {
        weight: main.clone(),
        scales: scales.clone(),
        global,
        rows_per_expert,
        rows,
        groups,
        blocks: false,
    };
    rows.blocks = groups.is_multiple_of(4) && rows.scales_fit()?;
    let ty = if rows.blocks { TensorType::NVFP4 } else { TensorType::F32 };
    Ok(Matrix { name: name.to_owned(), shape, content: Content::Rows(ty, Box::new(rows)) })
}

struct Nvfp4 {
    weight: Raw,
    scales: Raw,
    global: GlobalScale,
    rows_per_expert: u64,
    rows: u64,
    /// Groups per row.
    groups: u64,
    /// Whether rows are encoded as NVFP4 blocks, not F32.
    blocks: bool,
}

impl Nvfp4 {
    /// Whether all scales times the per-tensor scale are representable in E4M3.
    fn scales_fit(&self) -> Result<bool, gguf::Error> {
        // Few products fit unless the per-tensor scale is a power of two, so the first rows usually
        // decide.
        for row in 0..self.rows {
            let scales = self.row_scales(row)?;
            if !scales.iter().all(|scale| to_e4m3(*scale).is_some()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn row_scales(&self, row: u64) -> Result<Vec<f32>, gguf::Error> {
        let scales = self.scales.floats(row * self.groups, self.groups)?;
        let expert = row / self.rows_per_expert.max(1);
        Ok(scales.into_iter().map(|scale| self.global.apply(scale, expert)).collect())
    }
}

impl Rows for Nvfp4 {
    fn count(&self) -> u64 {
        self.rows
    }

    fn row_bytes(&self) -> u64 {
        if self.blocks { self.groups / 4 * 36 } else { self.groups * GROUP * 4 }
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        for (out, row) in out.chunks_exact_mut(self.row_bytes() as usize).zip(first..) {
            let scales = self.row_scales(row)?;
            let row_bytes = self.groups * GROUP / 2;
            let weights = self.weight.bytes(row * row_bytes, row_bytes)?;
            let groups = weights.as_chunks::<8>().0.iter().zip(&scales);
            if self.blocks {
                for (i, (codes, scale)) in groups.enumerate() {
                    let block = &mut out[i / 4 * 36..][..36];
                    block[i % 4] = to_e4m3(*scale).unwrap_or_default();
                    let code = |j: usize| codes[j / 2] >> (4 * (j % 2)) & 15;
                    let bytes = &mut block[4 + i % 4 * 8..][..8];
                    bytes.iter_mut().zip(0..).for_each(|(b, j)| *b = code(j) | code(j + 8) << 4);
                }
            } else {
                let values = groups.flat_map(|(codes, scale)| {
                    let codes = codes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
                    codes.map(move |code| value(code) * scale)
                });
                put_floats(out, values);
            }
        }
        Ok(())
    }
}

fn value(code: u8) -> f32 {
    let magnitude = E2M1[usize::from(code & 7)];
    if code < 8 { magnitude } else { -magnitude }
}

/// Encodes a scale as E4M3, if it is representable exactly.
fn to_e4m3(scale: f32) -> Option<u8> {
    let bits = scale.to_bits();
    if bits == 0 {
        return Some(0);
    }
    // Subnormals in steps of 2^-9, or a three-bit mantissa.
    let byte = match (bits >> 23) as i32 - 127 {
        ..-6 => (scale * 512.0) as u8,
        exponent @ -6..=8 => ((exponent + 7) as u8) << 3 | (bits >> 20 & 7) as u8,
        _ => return None,
    };
    (byte < 0x7f && e4m3(byte) == scale).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e4m3_scales_round_trip() {
        for byte in 0..0x7f {
            assert_eq!(to_e4m3(e4m3(byte)), Some(byte));
        }
        for scale in [f32::NAN, -1.0, 480.0, 1.0625, 1.0 / 1024.0, f32::INFINITY] {
            assert_eq!(to_e4m3(scale), None, "{scale}");
        }
    }
}
