//! Products in F32: weights are decoded piece by piece, and each piece is multiplied with all
//! activations.
//!
//! The order of a sum depends on nothing but its length: as many partial sums as a vector has
//! numbers, then their sum, then what is left of the row.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::floats::{Floats, Visitor, decode, dispatch, piece, visit};
use crate::scratch::Scratch;
use crate::value::Value;
use crate::watch::Watch;
use crate::weight::Matrix;

/// Rows of weights that are decoded together.
const TILE: usize = 16;

/// Columns of such a tile at most: it stays in the first-level cache.
const DEPTH: usize = 320;

/// Numbers that are made tile by tile before they are put where they belong: they stay in a cache.
const SLAB: usize = 1 << 20;

/// Tokens for which rows are decoded one by one.
const FEW: usize = 3;

/// Columns that are decoded together then, about.
const LONG: usize = 512;

/// Weights that one task decodes: enough to make its start cheap.
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
    let rows = if few { (TASK / matrix.row_len).max(1).next_multiple_of(ROWS) } else { TILE };
    if tokens == 1 {
        let tasks = out.data.par_chunks_mut(rows).enumerate();
        tasks.filter(|_| !watch.ended()).for_each(|(task, out)| {
            dispatch(ty, Rows { matrix, first: first + task * rows, x, out });
        });
        return;
    }
    let depth = depth(matrix);
    let slab = (SLAB / tokens).max(1).next_multiple_of(rows).min(outputs);
    let mut by_pieces = Scratch::new(if few { 0 } else { x.data.len() });
    if !few {
        cut(x, depth, &mut by_pieces);
    }
    let by_pieces = &*by_pieces;
    // By tiles first, with a row for each token, so that every thread writes to a place of its own.
    let mut tiles = Scratch::new(slab * tokens);
    for start in (0..outputs).step_by(slab) {
        let end = outputs.min(start + slab);
        let tiles = &mut tiles[..(end - start) * tokens];
        let tasks = tiles.par_chunks_mut(rows * tokens).enumerate();
        tasks.filter(|_| !watch.ended()).for_each(|(task, out)| {
            let first = first + start + task * rows;
            if few {
                dispatch(ty, Rows { matrix, first, x, out });
            } else {
                dispatch(ty, Tile { matrix, first, x: by_pieces, tokens, depth, out });
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

/// Columns of a piece of rows: all pieces but the last are as long, and none is much shorter. They end
/// with whole blocks and whole vectors.
fn depth(matrix: &Matrix) -> usize {
    let unit = matrix.block_len.next_multiple_of(16);
    let units = matrix.row_len.div_ceil(unit).max(1);
    let pieces = units.div_ceil((DEPTH / unit).max(1));
    units.div_ceil(pieces) * unit
}

/// The columns of all tokens piece by piece, so that tiles read from one place on.
fn cut(x: &Value, depth: usize, pieces: &mut [f32]) {
    pieces.par_chunks_mut(depth * x.rows).enumerate().for_each(|(number, piece)| {
        let width = piece.len() / x.rows;
        for (token, piece) in piece.chunks_exact_mut(width).enumerate() {
            piece.copy_from_slice(&x.row(token)[number * depth..][..width]);
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
        let mut rows = out.chunks_exact_mut(ROWS * T);
        let mut row = first;
        for out in &mut rows {
            multiply_floats::<S, F, N, ROWS, T>(simd, floats, matrix, row, x, out);
            row += ROWS;
        }
        for out in rows.into_remainder().chunks_exact_mut(T) {
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
            let weights = floats.sixteen(&whole[r][at]);
            let weights = S::as_simd_f32s(&weights).0;
            for t in 0..T {
                let x = S::as_simd_f32s(&xs[t][at]).0;
                for (weight, x) in weights.iter().zip(x) {
                    sums[r][t] = simd.mul_add_f32s(*weight, *x, sums[r][t]);
                }
            }
        }
    }
    let mut rests = [[0.0; T]; R];
    let mut weights = [[0.0; 16]; R];
    let mut pieces = [&[][..]; R];
    for (r, (weights, piece)) in weights.iter_mut().zip(&mut pieces).enumerate() {
        for (weight, bytes) in weights.iter_mut().zip(rest[r]) {
            *weight = floats.one(*bytes);
        }
        *piece = &weights[..rest[r].len()];
    }
    add(simd, pieces, xs_rest, &mut sums, &mut rests);
    for (r, out) in out.chunks_exact_mut(T).enumerate() {
        for (t, out) in out.iter_mut().enumerate() {
            *out = simd.reduce_sum_f32s(sums[r][t]) + rests[r][t];
        }
    }
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
    let depth = piece(matrix, LONG).min(len);
    let mut weights = [(); R].map(|()| vec![0.0; depth]);
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    let mut rests = [[0.0; T]; R];
    let mut start = 0;
    while start < len {
        let end = len.min(start + depth);
        let mut pieces = [&[][..]; R];
        for (r, (weights, piece)) in weights.iter_mut().zip(&mut pieces).enumerate() {
            decode(matrix, first + r, start, &mut weights[..end - start]);
            *piece = &weights[..end - start];
        }
        let mut xs = [&[][..]; T];
        for (t, xs) in xs.iter_mut().enumerate() {
            *xs = &x.row(t)[start..end];
        }
        add(simd, pieces, xs, &mut sums, &mut rests);
        start = end;
    }
    for (r, out) in out.chunks_exact_mut(T).enumerate() {
        for (t, out) in out.iter_mut().enumerate() {
            *out = simd.reduce_sum_f32s(sums[r][t]) + rests[r][t];
        }
    }
}

/// At most [`TILE`] rows with all tokens; of each token `out` has a number for each row.
struct Tile<'t> {
    matrix: &'t Matrix,
    first: usize,
    /// By pieces.
    x: &'t [f32],
    tokens: usize,
    /// Columns of a piece.
    depth: usize,
    out: &'t mut [f32],
}

/// Rows and tokens whose sums fit into registers.
const ROWS: usize = 4;
const TOKENS: usize = 3;

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, first, x, tokens, depth, out } = self;
        let rows = out.len() / tokens;
        let len = matrix.row_len;
        let depth = depth.min(len);
        let groups = tokens.div_ceil(TOKENS);
        let mut weights = Scratch::new(TILE * depth);
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
                let mut xs = [&[][..]; TOKENS];
                for (t, xs) in xs.iter_mut().enumerate() {
                    let token = (TOKENS * group + t).min(tokens - 1);
                    *xs = &x[start * tokens + token * width..][..width];
                }
                for (quarter, sums) in sums.iter_mut().enumerate() {
                    if ROWS * quarter >= rows {
                        break;
                    }
                    let mut of_rows = [&[][..]; ROWS];
                    for (r, of_row) in of_rows.iter_mut().enumerate() {
                        *of_row = &weights[(ROWS * quarter + r) * depth..][..width];
                    }
                    let rest = rests.get_mut(group * (TILE / ROWS) + quarter).unwrap_or(&mut none);
                    add(simd, of_rows, xs, sums, rest);
                }
            }
            start = end;
        }
        let made = sums.chunks_exact(TILE / ROWS).zip(rests.chunks_exact(TILE / ROWS));
        for ((sums, rests), out) in made.zip(out.chunks_mut(TOKENS * rows)) {
            for (t, out) in out.chunks_exact_mut(rows).enumerate() {
                let rows = sums.as_flattened().iter().zip(rests.as_flattened());
                for (out, (sum, rest)) in out.iter_mut().zip(rows) {
                    *out = simd.reduce_sum_f32s(sum[t]) + rest[t];
                }
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
    let vectors = xs[0].len() / S::F32_LANES;
    let (mut whole, mut rest): ([&[S::f32s]; R], [&[f32]; R]) = ([&[]; R], [&[]; R]);
    for r in 0..R {
        (whole[r], rest[r]) = S::as_simd_f32s(weights[r]);
        whole[r] = &whole[r][..vectors];
    }
    let (mut xs_whole, mut xs_rest): ([&[S::f32s]; T], [&[f32]; T]) = ([&[]; T], [&[]; T]);
    for t in 0..T {
        (xs_whole[t], xs_rest[t]) = S::as_simd_f32s(xs[t]);
        xs_whole[t] = &xs_whole[t][..vectors];
    }
    let mut sums = *out;
    // What a loop does beside its work is half as much for two vectors.
    for pair in 0..vectors / 2 {
        add_vector::<S, R, T>(simd, &whole, &xs_whole, 2 * pair, &mut sums);
        add_vector::<S, R, T>(simd, &whole, &xs_whole, 2 * pair + 1, &mut sums);
    }
    if !vectors.is_multiple_of(2) {
        add_vector::<S, R, T>(simd, &whole, &xs_whole, vectors - 1, &mut sums);
    }
    *out = sums;
    for (rests, weights) in rests.iter_mut().zip(rest) {
        for (rest, x) in rests.iter_mut().zip(xs_rest) {
            *rest += weights.iter().zip(x).map(|(weight, x)| weight * x).sum::<f32>();
        }
    }
}

/// Adds the products of one vector of each.
#[inline(always)]
fn add_vector<S: Simd, const R: usize, const T: usize>(
    simd: S,
    weights: &[&[S::f32s]; R],
    xs: &[&[S::f32s]; T],
    at: usize,
    sums: &mut [[S::f32s; T]; R],
) {
    let mut x = [simd.splat_f32s(0.0); T];
    for (x, xs) in x.iter_mut().zip(xs) {
        *x = xs[at];
    }
    for (sums, weights) in sums.iter_mut().zip(weights) {
        let weight = weights[at];
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = simd.mul_add_f32s(weight, x, *sum);
        }
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
