//! INT8 with scales, the `int-quantized` format of compressed-tensors: `X` (I8), `X_scale`, and
//! sometimes `X_zero_point`, where X is `model...weight`.
//!
//! ```text
//! X                 I8 [out, in]
//! X_scale, X_zero_point  [out, groups], [out] or [1]
//!
//! w[out][in] = scale[out][g] * (X[out][in] - zero[out][g])
//! ```

use std::sync::Arc;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::{Content, Matrix, MatrixError, TensorSet, rows_and_columns};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    if main.dtype != Dtype::I8 {
        return Ok(None);
    }
    let Some(scales) = set.take(&format!("{}_scale", main.name)) else { return Ok(None) };
    let zeros = set.take(&format!("{}_zero_point", main.name));
    let invalid = |what: &str| MatrixError::Parts(what.to_owned());
    let (rows, columns) = rows_and_columns(&main.shape)?;
    let scales_per_row = match scales.elements() {
        1 => 0,
        n if rows > 0 && n.is_multiple_of(rows) => n / rows,
        _ => return Err(invalid("and its scales have different shapes")),
    };
    if zeros.is_some_and(|zeros| zeros.elements() != scales.elements()) {
        return Err(invalid("has a different number of zero points and scales"));
    }
    let groups = Groups::even(columns, scales_per_row.max(1))
        .ok_or_else(|| invalid("has a number of columns that is not divisible by its groups"))?;
    let affine = Arc::new(Int8Matrix {
        weight: main.clone(),
        scales: scales.clone(),
        zeros: zeros.cloned(),
        scales_per_row,
        groups,
        shape: (rows, columns),
    });
    let (name, shape) = (main.name.clone(), main.shape.clone());
    Ok(Some(Matrix { name, shape, content: Content::Affine(affine) }))
}

struct Int8Matrix {
    weight: Raw,
    scales: Raw,
    zeros: Option<Raw>,
    /// Scales per row; 0 if all rows share one.
    scales_per_row: u64,
    groups: Groups,
    shape: (u64, u64),
}

/// Offset that makes the integers unsigned.
const MIDDLE: i16 = 128;

impl Affine for Int8Matrix {
    fn shape(&self) -> (u64, u64) {
        self.shape
    }

    fn bits(&self) -> u32 {
        8
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let (start, len) = match self.scales_per_row {
            0 => (0, 1),
            scales_per_row => (first * scales_per_row, n * scales_per_row),
        };
        let mut scales = self.scales.floats(start, len)?;
        let mut zeros = match &self.zeros {
            None => vec![MIDDLE; len as usize],
            Some(zeros) => {
                let zero = |zero: i128| zero.clamp(-128, 127) as i16 + MIDDLE;
                zeros.integers(start, len)?.into_iter().map(zero).collect()
            }
        };
        if self.scales_per_row == 0 {
            scales.resize(n as usize, scales[0]);
            zeros.resize(n as usize, zeros[0]);
        }
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let columns = self.shape.1;
        let mut bytes = self.weight.bytes(first * columns, n * columns)?;
        bytes.iter_mut().for_each(|byte| *byte ^= 0x80);
        Ok(bytes)
    }
}
