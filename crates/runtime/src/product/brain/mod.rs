//! Products in BF16, the upper half of F32, by instructions that multiply such numbers and add in F32: AMX's
//! with tiles (`tdpbf16ps`), or AVX-512's with vectors (`vdpbf16ps`).
//!
//! A number is taken as the sum of parts: the nearest in BF16, then the nearest to what is left.
//!
//! | arithmetic | weights | their parts | those of activations | products | by |
//! |---|---|---|---|---|---|
//! | `fast` | BF16 | 1 | 1 | 1 | AMX, AVX-512 |
//! | `exact` | BF16 | 1 | 2 | 2 | AMX |
//! | `exact` | all others, decoded to F32 | 2 | 2 | 3 | AMX |
//!
//! Of two parts each the product of the lesser ones is left out. `scalar.rs` has the order of sums, which
//! is that of the instruction: one token is multiplied by the same instruction as many, and what else is in
//! a tile changes nothing, so results do not depend on how tokens are cut into batches. AMX and AVX-512 add
//! in another order each.
//!
//! How exact that is: let S be the sum of `|w| |x|` over the n columns of a row. A part is off by half a
//! unit in its 8th bit at most. So what is left after one part is at most `2^-8 |w|`, and after two
//! `2^-17 |w|`; and of a product with
//!
//! - one part each, x alone being off, is lost at most `2^-8 |w| |x|`;
//! - two parts of x, `2^-17 |w| |x|`;
//! - two parts each, `2^-15 |w| |x|`: `2^-17` for each factor, and `2^-16` for the product of the lesser
//!   parts, which are `2^-8` of the factors at most.
//!
//! Each addition is off by `2^-24` of its result at most. With AMX a product goes through 16 additions within a
//! step of 32 columns, one of two sums, and one for each product of parts and step. So a result is off by at
//! most
//!
//! ```text
//! (lost + 1.01 * (17 + products * ceil(n / 32)) * 2^-24) * S
//! ```
//!
//! The 1.01 is for sums of parts that are greater than their wholes by `2^-7` at most. What is less than
//! `2^-126`, be it a part, a product or a sum, counts as 0: that is nothing beside the above where numbers
//! are 0 or between `2^-50` and `2^50`. What is no number, infinite, or rounds to more than BF16 holds,
//! makes results that are no numbers or infinite.

mod parts;
#[cfg(test)]
mod scalar;
#[cfg(test)]
mod tests;
mod tiles;
mod vectors;

use gguf::TensorType;
use rayon::prelude::*;

use super::{Arithmetic, How};
use crate::columns::columns;
use crate::instructions::{Brain, Proof};
use crate::scratch::Scratch;
use crate::value::Value;
use crate::watch::Watch;
use crate::weight::Matrix;

/// Columns of a step: those of a tile, and of a vector.
const STEP: usize = 32;

/// Rows of which a task has a multiple.
const ROWS: usize = 32;

/// Rows that a task has at most: weights of some columns, split, stay in the second-level cache.
const MOST: usize = 128;

/// Weights that a task has at least, about: enough to make its start cheap.
const TASK: usize = 1 << 15;

/// `out = x W`, with the rows of the matrix from `first` on; false, and nothing done, if that is not how
/// such weights are multiplied here.
pub(super) fn multiply(
    how: How<'_>,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut Value,
) -> bool {
    let Proof::Avx512(simd, _, Some(brain)) = how.instructions else { return false };
    if x.rows == 0 {
        return true;
    }
    let stored = matrix.codec.tensor_type() == TensorType::BF16;
    let fast = stored && how.arithmetic == Arithmetic::Fast;
    let job = Job { watch: how.watch, matrix, first, x };
    match brain {
        Brain::Vectors(_) if !fast => return false,
        Brain::Vectors(brain) => vectors::multiply(brain, job, out),
        Brain::Tiles(amx) if fast => tiles::multiply::<1, 1>(simd, amx, job, out),
        Brain::Tiles(amx) if stored => tiles::multiply::<1, 2>(simd, amx, job, out),
        Brain::Tiles(amx) => tiles::multiply::<2, 2>(simd, amx, job, out),
    }
    true
}

/// A product with the rows of a matrix from the first on.
#[derive(Clone, Copy)]
struct Job<'j> {
    watch: &'j Watch<'j>,
    matrix: &'j Matrix,
    first: usize,
    x: &'j Value,
}

impl Job<'_> {
    /// Makes `out` of what `task` makes of some rows: from the given one on, with a row of numbers
    /// for each token.
    fn share(self, out: &mut Value, task: impl Fn(usize, &mut [f32]) + Sync) {
        let Self { watch, matrix, first, x } = self;
        let (tokens, outputs) = (x.rows, out.width);
        let fair = outputs.div_ceil(rayon::current_num_threads());
        let rows = if tokens > 16 { fair } else { fair.min(TASK / matrix.row_len.max(1)) };
        let rows = rows.clamp(1, MOST).next_multiple_of(ROWS);
        let task = |(n, made): (usize, &mut [f32])| {
            if !watch.ended() {
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
            out.put(&made);
        });
    }
}
