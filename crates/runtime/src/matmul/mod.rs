//! Matrix multiplication with weights of any type.

#[cfg(target_arch = "x86_64")]
mod bf16;
pub(crate) mod exact;
mod fast;
mod floats;

pub(crate) use fast::{QuantizedInput, multiplies_integers};

use crate::instructions::SimdToken;
use crate::matrix::Matrix;
use crate::repack::RepackBudget;
use crate::value::Value;
use crate::watch::Watch;

/// Prefetch distance in bytes of floats that are read in place: hardware prefetching stops at the end of a page.
const AHEAD: usize = 12288;

/// Compute precision of matrix multiplication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Dequantized weights and F32 accumulation, for evaluation. With AMX, both factors are split into parts in BF16,
    /// which together keep 17 bits of a number.
    #[default]
    Exact,
    /// 8-bit activations, as in llama.cpp, for generation: activations are quantized per block and multiplied by the
    /// integers of the weights. With BF16 weights they are rounded to BF16, if the processor multiplies that. Types
    /// without integers and scales (unquantized floats, NVFP4 and a few others) are computed exactly.
    Fast,
}

/// The settings and shared state of a matrix multiplication.
#[derive(Clone, Copy)]
pub(crate) struct MatmulContext<'r> {
    pub precision: Precision,
    pub simd: SimdToken,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "only kernels for x86-64 repack weights")
    )]
    pub repack_budget: &'r RepackBudget,
    pub watch: &'r Watch<'r>,
}

/// Activations to multiply.
#[derive(Clone, Copy)]
pub(crate) struct Input<'r> {
    pub value: &'r Value,
    /// Cache of the quantized activations, if several matrices multiply them.
    pub quantized: Option<&'r QuantizedInput>,
}

impl<'r> From<&'r Value> for Input<'r> {
    fn from(value: &'r Value) -> Self {
        Self { value, quantized: None }
    }
}

/// Computes `out = x W`.
pub(crate) fn matmul(context: MatmulContext<'_>, matrix: &Matrix, x: Input<'_>, out: &mut Value) {
    if let Some(observer) = context.watch.observer {
        observer.matmul(&matrix.name, None, x.value);
    }
    multiply_rows(context, matrix, 0, x, out);
}

/// Computes `out = x W` with one of the matrices of a tensor.
pub(crate) fn matmul_id(
    context: MatmulContext<'_>,
    matrix: &Matrix,
    id: usize,
    x: Input<'_>,
    out: &mut Value,
) {
    if let Some(observer) = context.watch.observer {
        let count = matrix.rows / matrix.rows_per_matrix.max(1);
        observer.matmul(&matrix.name, Some((id, count)), x.value);
    }
    multiply_rows(context, matrix, id * matrix.rows_per_matrix, x, out);
}

/// Computes `out = x W` with the rows of a tensor from `first` on, as many as `out` is wide.
fn multiply_rows(
    context: MatmulContext<'_>,
    matrix: &Matrix,
    first: usize,
    x: Input<'_>,
    out: &mut Value,
) {
    if context.precision == Precision::Fast && fast::matmul(context, matrix, first, x, out) {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if bf16::matmul(context, matrix, first, x.value, out) {
        return;
    }
    exact::matmul(context.watch, matrix, first, x.value, out);
}

/// Multiplies each head by a matrix of its own.
pub(crate) fn batched_matmul(
    context: MatmulContext<'_>,
    matrix: &Matrix,
    x: &Value,
    out: &mut Value,
) {
    let input = matrix.row_len;
    let heads = x.width / input;
    let output = out.width / heads;
    if let Some(observer) = context.watch.observer {
        if output == matrix.rows_per_matrix {
            observer.matmul(&matrix.name, None, x);
        } else {
            let heads = Value { rows: x.rows * heads, width: input, data: x.data.clone() };
            observer.matmul(&matrix.name, None, &heads);
        }
    }
    for head in 0..heads {
        let mut head_input = Value::zeros(x.rows, input, Vec::new());
        for (row, head_input) in head_input.data.chunks_exact_mut(input).enumerate() {
            head_input.copy_from_slice(&x.row(row)[head * input..(head + 1) * input]);
        }
        let mut product = Value::zeros(x.rows, output, Vec::new());
        multiply_rows(context, matrix, head * output, (&head_input).into(), &mut product);
        let width = out.width;
        for (row, product) in product.data.chunks_exact(output).enumerate() {
            let start = row * width + head * output;
            out.data[start..start + output].copy_from_slice(product);
        }
    }
}
