//! Matrix multiplication in BF16, the upper half of F32, with F32 accumulation: AMX tiles (`tdpbf16ps`) or
//! AVX-512 vectors (`vdpbf16ps`).
//!
//! A number is split into parts: the nearest BF16 number, then the nearest to the remainder.
//!
//! | arithmetic | weights | their parts | those of activations | products | by |
//! |---|---|---|---|---|---|
//! | `fast` | BF16 | 1 | 1 | 1 | AMX, AVX-512 |
//! | `exact` | BF16 | 1 | 2 | 2 | AMX |
//! | `exact` | all others, decoded to F32 | 2 | 2 | 3 | AMX |
//!
//! With two parts each, the product of the smaller parts is omitted. `scalar.rs` specifies the order of sums,
//! which is that of the instruction. One token uses the same instruction as many, and other contents of a tile
//! change nothing, so results do not depend on the batches. AMX and AVX-512 add in different orders.
//!
//! Error bound: let S be the sum of `|w| |x|` over the n columns of a row. The error of a part is at most half a
//! unit in its 8th bit. So the remainder after one part is at most `2^-8 |w|`, and after two parts `2^-17 |w|`.
//! The error of a product with
//!
//! - one part each, x alone being off, is lost at most `2^-8 |w| |x|`;
//! - two parts of x, `2^-17 |w| |x|`;
//! - two parts each, `2^-15 |w| |x|`: `2^-17` for each factor, and `2^-16` for the product of the lesser
//!   parts, which are `2^-8` of the factors at most.
//!
//! The relative error of an addition is at most `2^-24`. With AMX, a product goes through 16 additions within a
//! step of 32 columns, one of two sums, and one per product of parts and step. So the error of a result is at
//! most
//!
//! ```text
//! (lost + 1.01 * (17 + products * ceil(n / 32)) * 2^-24) * S
//! ```
//!
//! The factor 1.01 covers sums of parts that exceed the number by at most `2^-7`. Parts, products and sums below
//! `2^-126` count as 0, which is negligible for numbers that are 0 or between `2^-50` and `2^50`. NaN, infinity
//! and numbers that round to more than the maximum of BF16 make results NaN or infinite.

mod parts;
#[cfg(test)]
mod scalar;
#[cfg(test)]
mod tests;
mod tiles;
mod vectors;

use gguf::TensorType;
use rayon::prelude::*;

use super::{MatmulContext, Precision};
use crate::columns::columns;
use crate::instructions::{Bf16Token, SimdToken};
use crate::matrix::Matrix;
use crate::scratch::Scratch;
use crate::value::Value;
use crate::watch::Watch;

/// Columns of a step: those of a tile and of a vector.
const STEP: usize = 32;

/// The number of rows of a task is a multiple of it.
const ROWS: usize = 32;

/// Maximum number of rows of a task: its split weights of some columns fit into the second-level cache.
const MOST: usize = 128;

/// Approximate minimum number of weights of a task: enough to amortize its start.
const TASK: usize = 1 << 15;

/// Computes `out = x W` with the rows of the matrix from `first` on. Returns false, and does nothing, if the
/// processor or the precision does not use BF16 for these weights.
pub(super) fn matmul(
    context: MatmulContext<'_>,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut Value,
) -> bool {
    let SimdToken::Avx512(simd, _, Some(bf16)) = context.simd else { return false };
    if x.rows == 0 {
        return true;
    }
    let stored = matrix.codec.tensor_type() == TensorType::BF16;
    let fast = stored && context.precision == Precision::Fast;
    let job = Job { watch: context.watch, matrix, first, x };
    match bf16 {
        Bf16Token::Avx512(_) if !fast => return false,
        Bf16Token::Avx512(bf16) => vectors::multiply(bf16, job, out),
        Bf16Token::Amx(amx) if fast => tiles::multiply::<1, 1>(simd, amx, job, out),
        Bf16Token::Amx(amx) if stored => tiles::multiply::<1, 2>(simd, amx, job, out),
        Bf16Token::Amx(amx) => tiles::multiply::<2, 2>(simd, amx, job, out),
    }
    true
}

/// A product with the rows of a matrix from `first` on.
#[derive(Clone, Copy)]
struct Job<'j> {
    watch: &'j Watch<'j>,
    matrix: &'j Matrix,
    first: usize,
    x: &'j Value,
}

impl Job<'_> {
    /// Computes `out` by tasks. `task` computes some rows of weights from a given one on: a row of results per
    /// token.
    fn share(self, out: &mut Value, task: impl Fn(usize, &mut [f32]) + Sync) {
        let Self { watch, matrix, first, x } = self;
        let (tokens, outputs) = (x.rows, out.width);
        let fair = outputs.div_ceil(rayon::current_num_threads());
        let rows = if tokens > 16 { fair } else { fair.min(TASK / matrix.row_len.max(1)) };
        let rows = rows.clamp(1, MOST).next_multiple_of(ROWS);
        let task = |(n, made): (usize, &mut [f32])| {
            if !watch.cancelled() {
                task(first + n * rows, made);
            }
        };
        if tokens == 1 {
            let tasks = out.data.par_chunks_mut(rows).enumerate();
            return tasks.for_each(task);
        }
        columns(out, rows).enumerate().for_each(|(n, mut out)| {
            let mut made = Scratch::new(out.len() * tokens);
            task((n, &mut made));
            out.write(&made);
        });
    }
}
