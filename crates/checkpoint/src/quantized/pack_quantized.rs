//! The `pack-quantized` format of compressed-tensors: `X_packed`, `X_scale`, `X_shape`, and
//! sometimes `X_zero_point` and `X_g_idx`, where X is `model...weight`.
//!
//! ```text
//! X_packed      I32 [out, words]         32 / bits values per word, the lowest bits first
//! X_scale           [out, groups]
//! X_zero_point  I32 [words, groups]      packed along the outputs
//! X_g_idx       I32 [in]                 group of each input
//! X_shape       I64 [2]                  out, in
//!
//! w[out][in] = scale[out][g] * (q[out][in] - zero[out][g])       zero = 2^(bits - 1) by default
//! ```
//!
//! Computed as in `unpack_from_int32` and `dequantize` of compressed-tensors: both q and zero are
//! stored with 2^(bits - 1) added, which cancels out.

use std::sync::Arc;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::{Content, Matrix, MatrixError, TensorSet};
use crate::dtype::Dtype;
use crate::raw::Raw;

/// Reads the matrix whose packed part is `main`, with `bits` bits per weight.
pub(super) fn matrix(
    set: &TensorSet,
    main: &Raw,
    bits: Option<u32>,
) -> Result<Option<Matrix>, MatrixError> {
    let Some(name) = main.name.strip_suffix("_packed") else { return Ok(None) };
    let part = |end: &str| format!("{name}_{end}");
    let invalid = |what: &str| MatrixError::Parts(what.to_owned());
    let Some(bits @ 1..=8) = bits else {
        return Err(invalid("has no `num_bits` from 1 to 8 in the configuration"));
    };
    set.take(&main.name);
    let (scales, shape) = (set.need(&part("scale"))?, set.need(&part("shape"))?);
    let zeros = set.take(&part("zero_point"));
    let list = set.take(&part("g_idx"));
    if main.dtype != Dtype::I32 || zeros.is_some_and(|zeros| zeros.dtype != Dtype::I32) {
        return Err(invalid("is not packed into 32-bit words"));
    }
    let [outputs, inputs] = shape.integers(0, shape.elements().min(3))?[..] else {
        return Err(invalid("is not a matrix"));
    };
    let (Ok(outputs), Ok(inputs @ 1..)) = (u64::try_from(outputs), u64::try_from(inputs)) else {
        return Err(invalid("has an invalid shape"));
    };
    let per_word = u64::from(32 / bits);
    let count = scales.shape.get(1).copied().unwrap_or(1);
    let zero_shape = [outputs.div_ceil(per_word), count];
    if main.shape != [outputs, inputs.div_ceil(per_word)]
        || scales.elements() != outputs.saturating_mul(count)
        || zeros.is_some_and(|zeros| zeros.shape != zero_shape)
    {
        return Err(invalid("and its scales or zeros have different shapes"));
    }
    let groups = match list {
        Some(list) if list.elements() == inputs => {
            Groups::from_list(&list.integers(0, inputs)?, count)
        }
        _ => Groups::even(inputs, count),
    };
    let groups = groups.ok_or_else(|| invalid("has groups without scales"))?;
    let affine = Arc::new(PackedMatrix {
        weight: main.clone(),
        zeros: zeros.cloned(),
        scales: scales.clone(),
        groups,
        shape: (outputs, inputs),
        bits,
    });
    let shape = vec![outputs, inputs];
    Ok(Some(Matrix { name: name.to_owned(), shape, content: Content::Affine(affine) }))
}

struct PackedMatrix {
    weight: Raw,
    zeros: Option<Raw>,
    scales: Raw,
    groups: Groups,
    shape: (u64, u64),
    bits: u32,
}

impl PackedMatrix {
    /// Unpacks value `at` of a row of words.
    fn unpack(&self, word: u32, at: u64) -> u8 {
        let per_word = u64::from(32 / self.bits);
        let shift = (at % per_word) as u32 * self.bits;
        (word >> shift & ((1 << self.bits) - 1)) as u8
    }
}

impl Affine for PackedMatrix {
    fn shape(&self) -> (u64, u64) {
        self.shape
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let count = self.groups.count();
        let scales = self.scales.floats(first * count, n * count)?;
        let Some(packed) = &self.zeros else {
            let middle = 1 << (self.bits - 1);
            let zeros = vec![middle; scales.len()];
            return Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) });
        };
        let per_word = u64::from(32 / self.bits);
        let (from, to) = (first / per_word, (first + n).div_ceil(per_word));
        let words = packed.words(from * count, (to - from) * count)?;
        let zero = |at: u64| {
            let (row, group) = (first + at / count, at % count);
            let word = words[((row / per_word - from) * count + group) as usize];
            i16::from(self.unpack(word, row))
        };
        let zeros = (0..n * count).map(zero).collect();
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let row_words = self.weight.shape[1];
        let words = self.weight.words(first * row_words, n * row_words)?;
        let per_word = u64::from(32 / self.bits);
        let columns = self.shape.1;
        let quants = words.chunks_exact(row_words as usize).flat_map(|words| {
            (0..columns).map(|at| self.unpack(words[(at / per_word) as usize], at))
        });
        Ok(quants.collect())
    }
}
