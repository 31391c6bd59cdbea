//! Products in F32: weights are decoded piece by piece, and each piece is multiplied with all
//! activations.
//!
//! The order of a sum depends on nothing but its length: as many partial sums as a vector has
//! numbers, then their sum, then what is left of the row.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::floats::{decode, piece};
use crate::value::Value;
use crate::weight::Matrix;

/// Rows of weights that are decoded together.
const TILE: usize = 16;

/// Columns of such a tile, about: it stays in the first-level cache.
const DEPTH: usize = 256;

/// Tokens for which rows are decoded one by one.
const FEW: usize = 3;

/// Columns that are decoded together then, about.
const LONG: usize = 1024;

/// Weights that one task decodes: enough to make its start cheap.
const TASK: usize = 1 << 15;

/// `out = x W`, with the rows of the matrix from `first` on.
pub(crate) fn multiply(matrix: &Matrix, first: usize, x: &Value, out: &mut Value) {
    let (tokens, outputs) = (x.rows, out.width);
    if tokens == 0 {
        return;
    }
    let arch = Arch::new();
    let few = tokens <= FEW;
    let rows = if few { (TASK / matrix.row_len).max(1) } else { TILE };
    if tokens == 1 {
        let tasks = out.data.par_chunks_mut(rows).enumerate();
        tasks.for_each(|(task, out)| {
            arch.dispatch(Rows { matrix, first: first + task * rows, x, out });
        });
        return;
    }
    // By tiles first, with a row for each token, so that every thread writes to a place of its own.
    let mut tiles = vec![0.0; tokens * outputs];
    let tasks = tiles.par_chunks_mut(rows * tokens).enumerate();
    tasks.for_each(|(task, out)| {
        let first = first + task * rows;
        if few {
            arch.dispatch(Rows { matrix, first, x, out });
        } else {
            arch.dispatch(Tile { matrix, first, x, out });
        }
    });
    let columns = out.data.par_chunks_exact_mut(outputs).with_min_len(8).enumerate();
    columns.for_each(|(token, out)| {
        for (out, tile) in out.chunks_mut(rows).zip(tiles.chunks(rows * tokens)) {
            if few {
                let column = tile.iter().skip(token).step_by(tokens);
                out.iter_mut().zip(column).for_each(|(out, made)| *out = *made);
            } else {
                out.copy_from_slice(&tile[token * out.len()..][..out.len()]);
            }
        }
    });
}

/// Rows of weights with at most [`FEW`] tokens; of each row `out` has a number for each token.
struct Rows<'t> {
    matrix: &'t Matrix,
    first: usize,
    x: &'t Value,
    out: &'t mut [f32],
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.x.rows {
            1 => self.multiply::<S, 1>(simd),
            2 => self.multiply::<S, 2>(simd),
            _ => self.multiply::<S, FEW>(simd),
        }
    }
}

impl Rows<'_> {
    #[inline(always)]
    fn multiply<S: Simd, const T: usize>(self, simd: S) {
        let Self { matrix, first, x, out } = self;
        let len = matrix.row_len;
        let depth = piece(matrix, LONG);
        let mut weights = vec![0.0; depth.min(len)];
        for (row, out) in out.as_chunks_mut::<T>().0.iter_mut().enumerate() {
            let mut sums = [[simd.splat_f32s(0.0); T]];
            let mut rests = [[0.0; T]];
            let mut start = 0;
            while start < len {
                let end = len.min(start + depth);
                let weights = &mut weights[..end - start];
                decode(matrix, first + row, start, weights);
                let xs = std::array::from_fn(|t| &x.row(t)[start..end]);
                add(simd, [weights], xs, &mut sums, &mut rests);
                start = end;
            }
            *out = std::array::from_fn(|t| simd.reduce_sum_f32s(sums[0][t]) + rests[0][t]);
        }
    }
}

/// At most [`TILE`] rows with all tokens; of each token `out` has a number for each row.
struct Tile<'t> {
    matrix: &'t Matrix,
    first: usize,
    x: &'t Value,
    out: &'t mut [f32],
}

/// Rows and tokens whose sums fit into registers.
const ROWS: usize = 4;
const TOKENS: usize = 3;

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, first, x, out } = self;
        let rows = out.len() / x.rows;
        let len = matrix.row_len;
        let depth = piece(matrix, DEPTH).min(len);
        let groups = x.rows.div_ceil(TOKENS);
        let mut weights = vec![0.0; TILE * depth];
        let mut sums = vec![[[simd.splat_f32s(0.0); TOKENS]; ROWS]; groups * (TILE / ROWS)];
        let mut start = 0;
        let mut rests = Vec::new();
        while start < len {
            let end = len.min(start + depth);
            let width = end - start;
            for (row, weights) in weights.chunks_exact_mut(depth).enumerate().take(rows) {
                decode(matrix, first + row, start, &mut weights[..width]);
            }
            // Only the last piece can have a rest; the others end with a whole vector, or the sum
            // would depend on how the row is cut.
            if end == len {
                rests = vec![[[0.0; TOKENS]; ROWS]; sums.len()];
            }
            let mut none = [[0.0; TOKENS]; ROWS];
            for (group, sums) in sums.chunks_exact_mut(TILE / ROWS).enumerate() {
                // Beyond the last token the last one stands in.
                let xs = std::array::from_fn(|t| {
                    &x.row((TOKENS * group + t).min(x.rows - 1))[start..end]
                });
                for (quarter, sums) in sums.iter_mut().enumerate() {
                    if ROWS * quarter >= rows {
                        break;
                    }
                    let weights =
                        std::array::from_fn(|r| &weights[(ROWS * quarter + r) * depth..][..width]);
                    let rest = rests.get_mut(group * (TILE / ROWS) + quarter).unwrap_or(&mut none);
                    add(simd, weights, xs, sums, rest);
                }
            }
            start = end;
        }
        for (token, out) in out.chunks_exact_mut(rows).enumerate() {
            for (row, out) in out.iter_mut().enumerate() {
                let at = token / TOKENS * (TILE / ROWS) + row / ROWS;
                let sum = sums[at][row % ROWS][token % TOKENS];
                *out = simd.reduce_sum_f32s(sum) + rests[at][row % ROWS][token % TOKENS];
            }
        }
    }
}

/// Adds the products of rows of weights with tokens, vector by vector, and of what is left.
#[inline(always)]
fn add<S: Simd, const R: usize, const T: usize>(
    simd: S,
    weights: [&[f32]; R],
    xs: [&[f32]; T],
    out: &mut [[S::f32s; T]; R],
    rests: &mut [[f32; T]; R],
) {
    let weights = weights.map(S::as_simd_f32s);
    let xs = xs.map(S::as_simd_f32s);
    let vectors = xs[0].0.len();
    let whole = weights.map(|(weights, _)| &weights[..vectors]);
    let xs_whole = xs.map(|(x, _)| &x[..vectors]);
    let mut sums = *out;
    for at in 0..vectors {
        let x: [S::f32s; T] = std::array::from_fn(|t| xs_whole[t][at]);
        for (sums, weights) in sums.iter_mut().zip(&whole) {
            let weight = weights[at];
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum = simd.mul_add_f32s(weight, x, *sum);
            }
        }
    }
    *out = sums;
    for (rests, (_, weights)) in rests.iter_mut().zip(weights) {
        for (rest, (_, x)) in rests.iter_mut().zip(xs) {
            *rest += weights.iter().zip(x).map(|(weight, x)| weight * x).sum::<f32>();
        }
    }
}

/// The products of rows with tokens.
#[inline(always)]
pub(crate) fn dots<S: Simd, const R: usize, const T: usize>(
    simd: S,
    weights: [&[f32]; R],
    xs: [&[f32]; T],
) -> [[f32; T]; R] {
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    let mut rests = [[0.0; T]; R];
    add(simd, weights, xs, &mut sums, &mut rests);
    std::array::from_fn(|r| std::array::from_fn(|t| simd.reduce_sum_f32s(sums[r][t]) + rests[r][t]))
}
