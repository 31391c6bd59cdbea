//! Products of activations with matrices of any type.

#[cfg(target_arch = "x86_64")]
mod brain;
mod exact;
mod fast;
mod floats;

#[cfg(target_arch = "x86_64")]
pub(crate) use fast::Lazily;

use crate::instructions::Proof;
use crate::lora::LowRank;
use crate::repacking::Repacking;
use crate::value::Value;
use crate::watch::Watch;
use crate::weight::Matrix;

/// How products are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// Weights are decoded to F32, and sums are in F32: for measuring. Where the processor multiplies tiles
    /// of BF16 (AMX), both are split into parts in BF16, which keep 17 bits of a number.
    #[default]
    Exact,
    /// Activations are rounded to 8 bits per block, as llama.cpp does it, and multiplied with the
    /// integers of the weights: for generating. With BF16 weights they are rounded to BF16 if the processor
    /// multiplies that. All other types that have no integers with scales (plain floats, NVFP4 and others
    /// that are rare) are computed exactly.
    Fast,
}

/// How products of a run are computed.
#[derive(Clone, Copy)]
pub(crate) struct How<'r> {
    pub arithmetic: Arithmetic,
    /// What they are computed by.
    pub instructions: Proof,
    /// What memory there is for weights once more.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "other kernels pack nothing yet")
    )]
    pub repacking: &'r Repacking,
    /// Whether they are still wanted.
    pub watch: &'r Watch<'r>,
}

/// `out = x W`.
pub(crate) fn multiply(how: How<'_>, matrix: &Matrix, x: &Value, out: &mut Value) {
    if let Some(observer) = how.watch.observer {
        observer.product(&matrix.name, None, x);
    }
    multiply_rows(how, matrix, 0, x, out);
}

/// `out = x W` with one matrix of several.
pub(crate) fn multiply_expert(
    how: How<'_>,
    matrix: &Matrix,
    expert: usize,
    x: &Value,
    out: &mut Value,
) {
    if let Some(observer) = how.watch.observer {
        let experts = matrix.rows / matrix.rows_of_one.max(1);
        observer.product(&matrix.name, Some((expert, experts)), x);
    }
    multiply_rows(how, matrix, expert * matrix.rows_of_one, x, out);
}

/// `out = x W` with the matrix whose rows begin at `first` of a tensor, as many as `out` is wide.
fn multiply_rows(how: How<'_>, matrix: &Matrix, first: usize, x: &Value, out: &mut Value) {
    if how.arithmetic == Arithmetic::Fast && fast::multiply(how, matrix, first, x, out) {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if brain::multiply(how, matrix, first, x, out) {
        return;
    }
    exact::multiply(how.watch, matrix, first, x, out);
}

/// The product of each head with a matrix of its own.
pub(crate) fn multiply_heads(how: How<'_>, matrix: &Matrix, x: &Value, out: &mut Value) {
    let input = matrix.row_len;
    let heads = x.width / input;
    let output = out.width / heads;
    if let Some(observer) = how.watch.observer {
        if output == matrix.rows_of_one {
            observer.product(&matrix.name, None, x);
        } else {
            let parts = Value { rows: x.rows * heads, width: input, data: x.data.clone() };
            observer.product(&matrix.name, None, &parts);
        }
    }
    for head in 0..heads {
        let mut part = Value::zeros(x.rows, input, Vec::new());
        for (row, part) in part.data.chunks_exact_mut(input).enumerate() {
            part.copy_from_slice(&x.row(row)[head * input..(head + 1) * input]);
        }
        let mut made = Value::zeros(x.rows, output, Vec::new());
        multiply_rows(how, matrix, head * output, &part, &mut made);
        let width = out.width;
        for (row, made) in made.data.chunks_exact(output).enumerate() {
            let start = row * width + head * output;
            out.data[start..start + output].copy_from_slice(made);
        }
    }
}

/// Adds what adapters add to a product with `x`.
pub(crate) fn add_adapters(how: How<'_>, adapters: &[LowRank], x: &Value, out: &mut Value) {
    for LowRank { a, b, scale } in adapters {
        let mut low = Value::zeros(x.rows, a.rows, Vec::new());
        exact::multiply(how.watch, a, 0, x, &mut low);
        let mut added = Value::zeros(x.rows, b.rows, Vec::new());
        exact::multiply(how.watch, b, 0, &low, &mut added);
        out.data.iter_mut().zip(&added.data).for_each(|(out, added)| *out += scale * added);
    }
}
