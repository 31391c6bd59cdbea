//! Products in F32: weights are decoded piece by piece, and each piece is multiplied with all
//! activations.
//!
//! The order of a sum depends on nothing but its length and the type: of a row, filled up with zeros to a
//! multiple of 16 columns, there are as many partial sums as a vector has numbers, then their sum.

#[cfg(target_arch = "x86_64")]
use pulp::NullaryFnOnce;
use pulp::bytemuck::cast_slice_mut;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::floats::{Floats, Visitor, decode, dispatch, visit};
use super::panels::{self, Adder, ROWS, Tokens, filled, lay};
#[cfg(target_arch = "x86_64")]
use crate::avx512::V4Products;
use crate::scratch::Scratch;
use crate::value::Value;
use crate::watch::Watch;
use crate::weight::Matrix;

/// Columns of a few rows that are decoded together.
const DEPTH: usize = 640;

/// Numbers that are made tile by tile before they are put where they belong: they stay in a cache.
const SLAB: usize = 1 << 20;

/// Tokens for which rows are decoded one by one.
const FEW: usize = 3;

/// Weights that one task decodes then: enough to make its start cheap.
const TASK: usize = 1 << 15;

/// `out = x W`, with the rows of the matrix from `first` on.
pub(crate) fn multiply(
    watch: &Watch<'_>,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut Value,
) {
    let (tokens, outputs) = (x.rows, out.width);
    if tokens == 0 {
        return;
    }
    let ty = matrix.codec.tensor_type();
    let few = tokens <= FEW;
    let rows = if few {
        (TASK / matrix.row_len).max(1).next_multiple_of(ROWS)
    } else {
        let fair = outputs.div_ceil(rayon::current_num_threads()).next_multiple_of(ROWS);
        panels::rows_of(matrix.row_len.div_ceil(16)).min(fair)
    };
    if tokens == 1 {
        let tasks = out.data.par_chunks_mut(rows).enumerate();
        tasks.filter(|_| !watch.ended()).for_each(|(task, out)| {
            dispatch(ty, Rows { matrix, first: first + task * rows, x, out });
        });
        return;
    }
    let slab = (SLAB / tokens).max(1).next_multiple_of(rows).min(outputs);
    let panels = if few { None } else { Some(Tokens::new(x, matrix.row_len.div_ceil(16), lay)) };
    // By tiles first, with a row for each token, so that every thread writes to a place of its own.
    let mut tiles = Scratch::new(slab * tokens);
    for start in (0..outputs).step_by(slab) {
        let end = outputs.min(start + slab);
        let tiles = &mut tiles[..(end - start) * tokens];
        let tasks = tiles.par_chunks_mut(rows * tokens).enumerate();
        tasks.filter(|_| !watch.ended()).for_each(|(task, out)| {
            let first = first + start + task * rows;
            match &panels {
                None => dispatch(ty, Rows { matrix, first, x, out }),
                Some(x) => Tile { matrix, first, x, out }.multiply(),
            }
        });
        let columns = out.data.par_chunks_exact_mut(outputs).with_min_len(8).enumerate();
        columns.for_each(|(token, out)| {
            let out = out[start..end].chunks_mut(rows);
            for (out, tile) in out.zip(tiles.chunks(rows * tokens)) {
                if few {
                    let column = tile.iter().skip(token).step_by(tokens);
                    out.iter_mut().zip(column).for_each(|(out, made)| *out = *made);
                } else {
                    out.copy_from_slice(&tile[token * out.len()..][..out.len()]);
                }
            }
        });
    }
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
        visit(self.matrix.codec.tensor_type(), OfTokens::<S, T> { simd, rows: self });
    }
}

/// Rows of weights with `T` tokens.
struct OfTokens<'t, S, const T: usize> {
    simd: S,
    rows: Rows<'t>,
}

impl<S: Simd, const T: usize> Visitor for OfTokens<'_, S, T> {
    #[inline(always)]
    fn floats<F: Floats<N>, const N: usize>(self, floats: F) {
        let Self { simd, rows: Rows { matrix, first, x, out } } = self;
        // Where one row has enough to do, memory is read fastest from one place on.
        let together = if T == 1 && S::F32_LANES == 16 { 0 } else { out.len() / (ROWS * T) };
        let (fours, rest) = out.split_at_mut(together * ROWS * T);
        let mut row = first;
        for out in fours.chunks_exact_mut(ROWS * T) {
            multiply_floats::<S, F, N, ROWS, T>(simd, floats, matrix, row, x, out);
            row += ROWS;
        }
        for out in rest.chunks_exact_mut(T) {
            multiply_floats::<S, F, N, 1, T>(simd, floats, matrix, row, x, out);
            row += 1;
        }
    }

    #[inline(always)]
    fn blocks(self) {
        let Self { simd, rows: Rows { matrix, first, x, out } } = self;
        let mut rows = out.chunks_exact_mut(ROWS * T);
        let mut row = first;
        for out in &mut rows {
            multiply_rows::<S, ROWS, T>(simd, matrix, row, x, out);
            row += ROWS;
        }
        for out in rows.into_remainder().chunks_exact_mut(T) {
            multiply_rows::<S, 1, T>(simd, matrix, row, x, out);
            row += 1;
        }
    }
}

/// `R` rows of plain floats with `T` tokens: multiplied as they are read.
#[inline(always)]
fn multiply_floats<S: Simd, F: Floats<N>, const N: usize, const R: usize, const T: usize>(
    simd: S,
    floats: F,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut [f32],
) {
    let sixteens = matrix.row_len / 16;
    let mut whole: [&[[[u8; N]; 16]]; R] = [&[]; R];
    let mut rest: [&[[u8; N]]; R] = [&[]; R];
    for r in 0..R {
        (whole[r], rest[r]) = matrix.rows(first + r, 1).as_chunks().0.as_chunks();
        whole[r] = &whole[r][..sixteens];
    }
    let (mut xs, mut xs_rest): ([&[[f32; 16]]; T], [&[f32]; T]) = ([&[]; T], [&[]; T]);
    for t in 0..T {
        (xs[t], xs_rest[t]) = x.row(t).as_chunks();
        xs[t] = &xs[t][..sixteens];
    }
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    for at in 0..sixteens {
        for r in 0..R {
            // The same columns of the rows that come next: a processor itself looks no further than a page,
            // but from one row to the next.
            if R > 1 {
                let at = whole[r][at].as_ptr().cast::<u8>();
                floats.prefetch(at.wrapping_add(R * matrix.row_bytes));
            }
            let weights = floats.sixteen(&whole[r][at]);
            for t in 0..T {
                add(simd, &weights, &xs[t][at], &mut sums[r][t]);
            }
        }
    }
    if !matrix.row_len.is_multiple_of(16) {
        for r in 0..R {
            let mut weights = [0.0; 16];
            for (weight, bytes) in weights.iter_mut().zip(rest[r]) {
                *weight = floats.one(*bytes);
            }
            for t in 0..T {
                add(simd, &weights, &filled(xs_rest[t]), &mut sums[r][t]);
            }
        }
    }
    put_sums(simd, &sums, out);
}

/// `R` rows of weights with `T` tokens.
#[inline(always)]
fn multiply_rows<S: Simd, const R: usize, const T: usize>(
    simd: S,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut [f32],
) {
    let len = matrix.row_len;
    // Whole blocks and whole vectors.
    let depth = DEPTH.next_multiple_of(matrix.block_len);
    let mut weights = Scratch::new(R * depth);
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    for start in (0..len).step_by(depth) {
        let width = depth.min(len - start);
        for (r, weights) in weights.chunks_exact_mut(depth).enumerate() {
            decode(matrix, first + r, start, &mut weights[..width]);
        }
        let mut of_rows: [(&[[f32; 16]], &[f32]); R] = [Default::default(); R];
        for (of_row, weights) in of_rows.iter_mut().zip(weights.chunks_exact(depth)) {
            *of_row = weights[..width].as_chunks();
        }
        let mut xs: [(&[[f32; 16]], &[f32]); T] = [Default::default(); T];
        for (t, xs) in xs.iter_mut().enumerate() {
            *xs = x.row(t)[start..start + width].as_chunks();
        }
        for at in 0..width / 16 {
            for r in 0..R {
                for t in 0..T {
                    add(simd, &of_rows[r].0[at], &xs[t].0[at], &mut sums[r][t]);
                }
            }
        }
        if !width.is_multiple_of(16) {
            for r in 0..R {
                for t in 0..T {
                    add(simd, &filled(of_rows[r].1), &filled(xs[t].1), &mut sums[r][t]);
                }
            }
        }
    }
    put_sums(simd, &sums, out);
}

/// Adds the products of sixteen weights with a token's numbers to the partial sums.
#[inline(always)]
fn add<S: Simd>(simd: S, weights: &[f32; 16], x: &[f32; 16], sums: &mut S::f32s) {
    for (weight, x) in S::as_simd_f32s(weights).0.iter().zip(S::as_simd_f32s(x).0) {
        *sums = simd.mul_add_f32s(*weight, *x, *sums);
    }
}

/// Puts the sums of partial sums where they belong.
#[inline(always)]
fn put_sums<S: Simd, const R: usize, const T: usize>(
    simd: S,
    sums: &[[S::f32s; T]; R],
    out: &mut [f32],
) {
    for (out, sums) in out.iter_mut().zip(sums.as_flattened()) {
        *out = simd.reduce_sum_f32s(*sums);
    }
}

/// Some rows with all tokens; of each token `out` has a number for each row.
struct Tile<'t> {
    matrix: &'t Matrix,
    first: usize,
    x: &'t Tokens,
    out: &'t mut [f32],
}

impl Tile<'_> {
    fn multiply(self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = V4Products::try_new() {
            return simd.vectorize(By { adder: simd, tile: self });
        }
        dispatch(self.matrix.codec.tensor_type(), self);
    }

    #[inline(always)]
    fn by(self, adder: impl Adder) {
        let Self { matrix, first, x, out } = self;
        let rows = out.len() / x.count;
        let mut row = Scratch::new(matrix.row_len);
        let mut weights = Scratch::new(rows.next_multiple_of(ROWS) * x.steps * 16);
        let weights = cast_slice_mut(&mut weights);
        for (number, panel) in weights.chunks_exact_mut(x.steps).enumerate() {
            for r in 0..ROWS {
                // The last stands in for those that are not there.
                if ROWS * number + r < rows {
                    decode(matrix, first + ROWS * number + r, 0, &mut row);
                }
                lay(&row, r, panel);
            }
        }
        panels::multiply(adder, weights, x, out);
    }
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.by(panels::Floats(simd));
    }
}

#[cfg(target_arch = "x86_64")]
struct By<'t> {
    adder: V4Products,
    tile: Tile<'t>,
}

#[cfg(target_arch = "x86_64")]
impl NullaryFnOnce for By<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.tile.by(self.adder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::TensorType;

    #[test]
    fn a_token_alone_gives_the_bits_of_a_batch() {
        let (rows, tokens) = (7, 9);
        for (ty, bytes) in [(TensorType::F32, 4), (TensorType::BF16, 2), (TensorType::F16, 2)] {
            for len in [1, 7, 8, 15, 16, 24, 31, 256, 300, 1037] {
                let data: Vec<u8> = (0..rows * len)
                    .flat_map(|i| {
                        let x = ((i * 7919 % 1013) as f32 - 500.0) * 1e-4;
                        match ty {
                            TensorType::F32 => x.to_le_bytes().to_vec(),
                            TensorType::BF16 => half::bf16::from_f32(x).to_le_bytes().to_vec(),
                            _ => half::f16::from_f32(x * 1e-2).to_le_bytes().to_vec(),
                        }
                    })
                    .collect();
                assert_eq!(data.len(), rows * len * bytes);
                let matrix = Matrix::of_floats(ty, len, rows, data);
                let watch = Watch::new(&());
                let product = |x: &Value| {
                    let mut out = Value::zeros(x.rows, rows, Vec::new());
                    multiply(&watch, &matrix, 0, x, &mut out);
                    out.data.iter().map(|y| y.to_bits()).collect::<Vec<_>>()
                };
                let mut x = Value::zeros(tokens, len, Vec::new());
                for (i, x) in x.data.iter_mut().enumerate() {
                    *x = (i * 104729 % 2003) as f32 * 1e-3 - 1.0;
                }
                let batch = product(&x);
                for count in 1..=FEW {
                    let mut few = Value::zeros(count, len, Vec::new());
                    few.data.copy_from_slice(&x.data[..count * len]);
                    assert_eq!(product(&few), batch[..count * rows], "{ty} {len} {count}");
                }
            }
        }
    }
}
