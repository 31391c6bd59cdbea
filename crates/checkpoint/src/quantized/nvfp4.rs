//! NVFP4: `X`, `X_scale` and `X_scale_2` (ModelOpt), or `X_packed`, `X_scale` and
//! `X_global_scale` (compressed-tensors), where X is `model...weight`.
//!
//! ```text
//! X, X_packed       U8 [..., out, in / 2]    | x[2*j + 1] | x[2*j] |
//! X_scale           F8_E4M3 [..., out, in / 16]
//! X_scale_2         F32, one for all or one per expert
//! X_global_scale    F32, likewise, by which is divided
//!
//! w = x * (scale * scale_2)        w = x * (scale / global_scale)
//! ```
//!
//! x is an E2M1 float (OCP Microscaling Formats). Our NVFP4 has no scale for the whole tensor, so
//! it holds the same values only where that scale, multiplied in, leaves every scale an E4M3.

use gguf::TensorType;

use super::{Content, Matrix, Set, Wrong, put_floats, rows_and_columns};
use crate::dtype::{Dtype, e4m3};
use crate::raw::Raw;
use crate::rows::Rows;

/// Numbers under one scale.
const GROUP: u64 = 16;

/// Values of the codes 0 to 7; those of 8 to 15 are the same below 0.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The matrix whose numbers are `main`, as ModelOpt stores it.
pub(super) fn matrix(set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
    let scale_name = format!("{}_scale", main.name);
    if main.dtype != Dtype::U8 || !set.by_name.contains_key(&*scale_name) {
        return Ok(None);
    }
    set.take(&main.name);
    let scales = set.need(&scale_name)?;
    let global = match set.take(&format!("{}_scale_2", main.name)) {
        Some(global) => Global::of(global, main, false)?,
        None => Global(vec![1.0], false),
    };
    build(&main.name, main, scales, global).map(Some)
}

/// The matrix whose numbers are `main`, as compressed-tensors stores it.
pub(super) fn packed_matrix(set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
    let Some(name) = main.name.strip_suffix("_packed") else { return Ok(None) };
    let scale_name = format!("{name}_scale");
    let is_e4m3 = set.by_name.get(&*scale_name).is_some_and(|raw| raw.dtype == Dtype::F8E4M3);
    if main.dtype != Dtype::U8 || !is_e4m3 {
        return Ok(None);
    }
    set.take(&main.name);
    let scales = set.need(&scale_name)?;
    let global = Global::of(set.need(&format!("{name}_global_scale"))?, main, true)?;
    build(name, main, scales, global).map(Some)
}

/// The scales of whole matrices, and whether they divide.
struct Global(Vec<f32>, bool);

impl Global {
    /// Those of the matrices of `main`.
    fn of(raw: &Raw, main: &Raw, divides: bool) -> Result<Self, Wrong> {
        let experts: u64 = main.shape.iter().rev().skip(2).product();
        let count = raw.elements();
        if count != 1 && count != experts {
            return Err(Wrong::Parts(format!("has {count} values in `{}`", raw.name)));
        }
        Ok(Self(raw.floats(0, count)?, divides))
    }

    /// The scale of a group in matrix `expert`.
    fn times(&self, scale: f32, expert: u64) -> f32 {
        let global = self.0[(expert as usize).min(self.0.len() - 1)];
        if self.1 { scale / global } else { scale * global }
    }
}

fn build(name: &str, main: &Raw, scales: &Raw, global: Global) -> Result<Matrix, Wrong> {
    let (rows, bytes) = rows_and_columns(&main.shape)?;
    let groups = bytes * 2 / GROUP;
    let expected = [&main.shape[..main.shape.len() - 1], &[groups]].concat();
    let experts: u64 = main.shape.iter().rev().skip(2).product();
    if scales.dtype != Dtype::F8E4M3 || scales.shape != expected || groups * GROUP != bytes * 2 {
        let what = format!("does not go with scales of the shape {:?}", scales.shape);
        return Err(Wrong::Parts(what));
    }
    let shape = [&main.shape[..main.shape.len() - 1], &[bytes * 2]].concat();
    let rows_of_expert = rows / experts.max(1);
    let mut rows = Nvfp4 {
        weight: main.clone(),
        scales: scales.clone(),
        global,
        rows_of_expert,
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
    global: Global,
    rows_of_expert: u64,
    rows: u64,
    /// Groups of a row.
    groups: u64,
    /// Whether rows are blocks of our type, not floats.
    blocks: bool,
}

impl Nvfp4 {
    /// Whether all scales, after the one for the whole matrix, are ones of our type.
    fn scales_fit(&self) -> Result<bool, gguf::Error> {
        // Most scales of whole matrices are no powers of two, under which few others fit: then
        // the first rows say so.
        for row in 0..self.rows {
            let scales = self.scales_of(row)?;
            if !scales.iter().all(|scale| as_e4m3(*scale).is_some()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn scales_of(&self, row: u64) -> Result<Vec<f32>, gguf::Error> {
        let scales = self.scales.floats(row * self.groups, self.groups)?;
        let expert = row / self.rows_of_expert.max(1);
        Ok(scales.into_iter().map(|scale| self.global.times(scale, expert)).collect())
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
            let scales = self.scales_of(row)?;
            let of_row = self.groups * GROUP / 2;
            let weights = self.weight.bytes(row * of_row, of_row)?;
            let groups = weights.as_chunks::<8>().0.iter().zip(&scales);
            if self.blocks {
                for (i, (codes, scale)) in groups.enumerate() {
                    let block = &mut out[i / 4 * 36..][..36];
                    block[i % 4] = as_e4m3(*scale).unwrap_or_default();
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

/// The byte of a scale of our type, if it has exactly this value.
fn as_e4m3(scale: f32) -> Option<u8> {
    let bits = scale.to_bits();
    if bits == 0 {
        return Some(0);
    }
    // In steps of 2^-9, or with three bits after the first.
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
    fn scales_are_found_again() {
        for byte in 0..0x7f {
            assert_eq!(as_e4m3(e4m3(byte)), Some(byte));
        }
        for scale in [f32::NAN, -1.0, 480.0, 1.0625, 1.0 / 1024.0, f32::INFINITY] {
            assert_eq!(as_e4m3(scale), None, "{scale}");
        }
    }
}
