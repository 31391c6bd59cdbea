//! Products in F32: rows of weights are decoded by tiles, and each tile is multiplied with all
//! activations.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::value::Value;
use crate::weight::Matrix;

/// Rows that are decoded together.
const TILE: usize = 16;

/// `out = x W`, with the rows of the matrix from `first` on.
pub(crate) fn multiply(matrix: &Matrix, first: usize, x: &Value, out: &mut Value) {
    let (rows, outputs) = (x.rows, out.width);
    if rows == 0 {
        return;
    }
    let arch = Arch::new();
    // By column first, so that every thread writes to a place of its own.
    let mut turned = vec![0.0; rows * outputs];
    turned.par_chunks_mut(TILE * rows).enumerate().for_each_init(
        Vec::new,
        |tile, (number, out)| {
            let count = out.len() / rows;
            tile.resize(count * matrix.row_len, 0.0);
            matrix.decode(first + number * TILE, tile);
            arch.dispatch(Tile { weights: tile, x, len: matrix.row_len, out });
        },
    );
    if rows == 1 {
        out.data.copy_from_slice(&turned);
        return;
    }
    let columns = out.data.par_chunks_exact_mut(outputs).enumerate();
    columns.for_each(|(row, out)| {
        for (out, column) in out.iter_mut().zip(turned.chunks_exact(rows)) {
            *out = column[row];
        }
    });
}

/// Decoded rows of weights, and where their products go: one row of `out` for each.
struct Tile<'t> {
    weights: &'t [f32],
    x: &'t Value,
    len: usize,
    out: &'t mut [f32],
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { weights, x, len, out } = self;
        let count = weights.len() / len;
        let row = |row: usize| &weights[row * len..(row + 1) * len];
        let mut first = 0;
        // Four rows with three tokens at a time: what fits into registers.
        while first + 4 <= count {
            block(simd, std::array::from_fn::<_, 4, _>(|i| row(first + i)), x, first, out);
            first += 4;
        }
        while first < count {
            block(simd, [row(first)], x, first, out);
            first += 1;
        }
    }
}

/// Some rows of weights with all tokens.
#[inline(always)]
fn block<S: Simd, const R: usize>(
    simd: S,
    weights: [&[f32]; R],
    x: &Value,
    first: usize,
    out: &mut [f32],
) {
    let mut token = 0;
    while token + 3 <= x.rows {
        let xs = std::array::from_fn::<_, 3, _>(|i| x.row(token + i));
        put(dots(simd, weights, xs), x.rows, first, token, out);
        token += 3;
    }
    while token < x.rows {
        put(dots(simd, weights, [x.row(token)]), x.rows, first, token, out);
        token += 1;
    }
}

#[inline(always)]
fn put<const R: usize, const T: usize>(
    made: [[f32; T]; R],
    rows: usize,
    first: usize,
    token: usize,
    out: &mut [f32],
) {
    for (i, made) in made.iter().enumerate() {
        let start = (first + i) * rows + token;
        out[start..start + T].copy_from_slice(made);
    }
}

/// The products of every row of weights with every token. The order of a sum depends on nothing but
/// its length.
#[inline(always)]
fn dots<S: Simd, const R: usize, const T: usize>(
    simd: S,
    weights: [&[f32]; R],
    xs: [&[f32]; T],
) -> [[f32; T]; R] {
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    let weights = weights.map(S::as_simd_f32s);
    let xs = xs.map(S::as_simd_f32s);
    let vectors = xs[0].0.len();
    for at in 0..vectors {
        let x: [S::f32s; T] = std::array::from_fn(|t| xs[t].0[at]);
        for (sums, (weights, _)) in sums.iter_mut().zip(&weights) {
            let weight = weights[at];
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum = simd.mul_add_f32s(weight, x, *sum);
            }
        }
    }
    std::array::from_fn(|r| {
        std::array::from_fn(|t| {
            let rest = weights[r].1.iter().zip(xs[t].1).map(|(weight, x)| weight * x);
            simd.reduce_sum_f32s(sums[r][t]) + rest.sum::<f32>()
        })
    })
}
