//! Matrix multiplication in F32: weights are dequantized panel by panel, and each panel is multiplied by all
//! activations.
//!
//! The order of a sum depends only on its length, the type and the instruction set. A row is split into [panels](Blocking::panel),
//! the last one padded with zeros to a multiple of 16. Each panel has one partial sum per SIMD lane; their sums
//! are added panel by panel.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::AHEAD;
use super::floats::{Floats, Visitor, decode, decode_blocks, dispatch, visit};
use crate::columns::columns;
use crate::matrix::Matrix;
use crate::scratch::Scratch;
use crate::value::Value;
use crate::watch::Watch;

/// Rows of weights that are dequantized together.
const TILE: usize = 16;

/// Tokens whose columns of a panel fit into the second-level cache.
const BLOCK: usize = 48;

/// Rows whose sums with some tokens fit into registers.
const ROWS: usize = 4;

/// Sizes that fit into the registers and the first-level cache with an instruction set.
#[derive(Clone, Copy)]
struct Blocking {
    /// Tokens whose sums with [`ROWS`] rows fit into registers.
    tokens: usize,
    /// Maximum number of columns of a panel: those of [`ROWS`] rows and of the tokens stay in the cache.
    depth: usize,
}

impl Blocking {
    const OF_32_REGISTERS: Self = Self { tokens: 6, depth: 1024 };
    const OF_16_REGISTERS: Self = Self { tokens: 3, depth: 640 };

    #[inline(always)]
    fn of<S: Simd>() -> Self {
        if S::REGISTER_COUNT >= 32 { Self::OF_32_REGISTERS } else { Self::OF_16_REGISTERS }
    }

    /// Returns the number of columns of a panel. All panels but the last have it, and none is much shorter. They contain whole
    /// blocks and whole vectors.
    fn panel(self, matrix: &Matrix) -> usize {
        let unit = matrix.block_len.next_multiple_of(16);
        let units = matrix.row_len.div_ceil(unit).max(1);
        let pieces = units.div_ceil((self.depth / unit).max(1));
        units.div_ceil(pieces) * unit
    }
}

/// Returns the blocking of the best instruction set of the processor.
struct FindBlocking;

impl WithSimd for FindBlocking {
    type Output = Blocking;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Blocking {
        Blocking::of::<S>()
    }
}

/// Maximum number of tokens for which rows are dequantized one by one.
const FEW: usize = 3;

/// Weights per task in that case: enough to amortize the start of a task.
const TASK: usize = 1 << 15;

/// Computes `out = x W` with the rows of the matrix from `first` on.
pub(crate) fn matmul(watch: &Watch<'_>, matrix: &Matrix, first: usize, x: &Value, out: &mut Value) {
    let tokens = x.rows;
    if tokens == 0 {
        return;
    }
    let few = tokens <= FEW;
    let rows = if few { (TASK / matrix.row_len).max(1).next_multiple_of(ROWS) } else { TILE };
    if tokens == 1 {
        let tasks = out.data.par_chunks_mut(rows).enumerate();
        tasks.filter(|_| !watch.cancelled()).for_each(|(task, out)| {
            dispatch(Rows { matrix, first: first + task * rows, x, out });
        });
        return;
    }
    let blocking = dispatch(FindBlocking);
    let padded = matrix.row_len.next_multiple_of(16) * tokens.next_multiple_of(blocking.tokens);
    let mut by_pieces = Scratch::new(if few { 0 } else { padded });
    if !few {
        cut(x, blocking.panel(matrix), blocking.tokens, &mut by_pieces);
    }
    let by_pieces = &*by_pieces;
    let tasks = columns(out, rows).enumerate();
    tasks.filter(|_| !watch.cancelled()).for_each(|(task, mut out)| {
        let (first, len) = (first + task * rows, out.len());
        let mut result = Scratch::new(len * tokens);
        if few {
            dispatch(Rows { matrix, first, x, out: &mut result });
            for token in 0..tokens {
                let column = result.iter().skip(token).step_by(tokens);
                out.row(token).iter_mut().zip(column).for_each(|(out, result)| *out = *result);
            }
        } else {
            dispatch(Tile { matrix, first, x: by_pieces, tokens, out: &mut result });
            out.write(&result);
        }
    });
}

/// Repacks activations panel by panel, within a panel by groups of tokens, and within a group sixteen columns of
/// each token in turn, so that a product reads contiguous memory. Padding is 0.
fn cut(x: &Value, depth: usize, in_group: usize, pieces: &mut [f32]) {
    let tokens = x.rows.next_multiple_of(in_group);
    pieces.par_chunks_mut(depth * tokens).enumerate().for_each(|(number, piece)| {
        let width = piece.len() / tokens;
        for (group, piece) in piece.chunks_exact_mut(in_group * width).enumerate() {
            for t in 0..in_group {
                let row = x.row(group * in_group + t).get(number * depth..).unwrap_or_default();
                spread(&row[..row.len().min(width)], t, in_group, piece);
            }
        }
    });
}

/// Writes a row into a group of `in_group` rows that are interleaved by sixteen columns.
#[inline(always)]
fn spread(row: &[f32], number: usize, in_group: usize, out: &mut [f32]) {
    let (whole, rest) = row.as_chunks();
    let mut outs = out.as_chunks_mut::<16>().0.iter_mut().skip(number).step_by(in_group);
    for (row, out) in whole.iter().zip(&mut outs) {
        *out = *row;
    }
    if let Some(out) = outs.next() {
        out.fill(0.0);
        out[..rest.len()].copy_from_slice(rest);
    }
    outs.for_each(|out| out.fill(0.0));
}

/// Rows of weights with at most [`FEW`] tokens; `out` has a number per row and token.
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
        visit::<S>(self.matrix.codec.tensor_type(), OfTokens::<S, T> { simd, rows: self });
    }
}

/// Multiplies rows of weights by `T` tokens.
struct OfTokens<'t, S, const T: usize> {
    simd: S,
    rows: Rows<'t>,
}

impl<S: Simd, const T: usize> Visitor for OfTokens<'_, S, T> {
    #[inline(always)]
    fn floats<F: Floats<N>, const N: usize>(self, floats: F) {
        let Self { simd, rows: Rows { matrix, first, x, out } } = self;
        // One row after the other is read fastest, if a vector holds a step: otherwise each sum waits for the one before.
        let fours = if S::F32_LANES >= 16 { 0 } else { out.len() / (ROWS * T) };
        let (fours, rest) = out.split_at_mut(fours * ROWS * T);
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

/// Multiplies `R` rows of unquantized floats by `T` tokens without copying them.
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
    let later = matrix.rows(first, R).as_ptr().wrapping_add(AHEAD);
    out.fill(0.0);
    let depth = Blocking::of::<S>().panel(matrix) / 16;
    let mut start = 0;
    loop {
        let end = sixteens.min(start + depth);
        let mut sums = [[simd.splat_f32s(0.0); T]; R];
        for at in start..end {
            for r in 0..R {
                // In the order of the file, which is read faster than several rows in turns.
                floats.prefetch(later.wrapping_add((at * R + r) * 16 * N));
                let weights = floats.sixteen(&whole[r][at]);
                for t in 0..T {
                    add(simd, &weights, &xs[t][at], &mut sums[r][t]);
                }
            }
        }
        if end == sixteens {
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
        add_sums(simd, &sums, out);
        start = end;
        if end == sixteens {
            break;
        }
    }
}

/// Multiplies `R` rows of weights by `T` tokens.
#[inline(always)]
fn multiply_rows<S: Simd, const R: usize, const T: usize>(
    simd: S,
    matrix: &Matrix,
    first: usize,
    x: &Value,
    out: &mut [f32],
) {
    let len = matrix.row_len;
    let depth = Blocking::of::<S>().panel(matrix);
    let mut weights = Scratch::new(R * depth);
    out.fill(0.0);
    for start in (0..len).step_by(depth) {
        let width = depth.min(len - start);
        for (r, weights) in weights.chunks_exact_mut(depth).enumerate() {
            decode_blocks(matrix, first + r, start, &mut weights[..width]);
        }
        let mut sums = [[simd.splat_f32s(0.0); T]; R];
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
        add_sums(simd, &sums, out);
    }
}

/// Returns the rest of a row, padded with zeros.
fn filled(rest: &[f32]) -> [f32; 16] {
    let mut result = [0.0; 16];
    result[..rest.len()].copy_from_slice(rest);
    result
}

/// Adds the products of sixteen weights with a token to the partial sums.
#[inline(always)]
fn add<S: Simd>(simd: S, weights: &[f32; 16], x: &[f32; 16], sums: &mut S::f32s) {
    for (weight, x) in S::as_simd_f32s(weights).0.iter().zip(S::as_simd_f32s(x).0) {
        *sums = simd.mul_add_f32s(*weight, *x, *sums);
    }
}

/// Adds the sums of a panel.
#[inline(always)]
fn add_sums<S: Simd, const R: usize, const T: usize>(
    simd: S,
    sums: &[[S::f32s; T]; R],
    out: &mut [f32],
) {
    for (out, sums) in out.iter_mut().zip(sums.as_flattened()) {
        *out += simd.reduce_sum_f32s(*sums);
    }
}

/// At most [`TILE`] rows with all tokens; `out` has a number per token and row.
struct Tile<'t> {
    matrix: &'t Matrix,
    first: usize,
    /// Activations, repacked by [`cut`].
    x: &'t [f32],
    tokens: usize,
    out: &'t mut [f32],
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 {
            self.multiply::<S, { Blocking::OF_32_REGISTERS.tokens }>(simd);
        } else {
            self.multiply::<S, { Blocking::OF_16_REGISTERS.tokens }>(simd);
        }
    }
}

impl Tile<'_> {
    /// Multiplies by `T` tokens at a time.
    #[inline(always)]
    fn multiply<S: Simd, const T: usize>(self, simd: S) {
        let Self { matrix, first, x, tokens, out } = self;
        let rows = out.len() / tokens;
        let depth = Blocking::of::<S>().panel(matrix);
        let tokens = tokens.next_multiple_of(T);
        let mut row_weights = Scratch::new(depth);
        let mut weights = Scratch::new(TILE * depth);
        out.fill(0.0);
        for (number, x) in x.chunks(depth * tokens).enumerate() {
            let start = number * depth;
            let padded = x.len() / tokens;
            let row_weights = &mut row_weights[..depth.min(matrix.row_len - start)];
            let weights = &mut weights[..rows.next_multiple_of(ROWS) * padded];
            for (quarter, weights) in weights.chunks_exact_mut(ROWS * padded).enumerate() {
                for r in 0..ROWS {
                    let row = ROWS * quarter + r;
                    if row < rows {
                        decode::<S>(matrix, first + row, start, row_weights);
                    }
                    spread(row_weights, r, ROWS, weights);
                }
            }
            let blocks = x.chunks(BLOCK * padded).zip(out.chunks_mut(BLOCK * rows));
            for (x, out) in blocks {
                for (four, weights) in weights.chunks_exact(ROWS * padded).enumerate() {
                    let weights = weights.as_chunks().0.as_chunks().0;
                    let groups = x.chunks_exact(T * padded).zip(out.chunks_mut(T * rows));
                    for (x, out) in groups {
                        let x = x.as_chunks().0.as_chunks().0;
                        let sums = multiply_panel::<S, T>(simd, weights, x);
                        for (out, sums) in out.chunks_exact_mut(rows).zip(sums) {
                            let out = &mut out[ROWS * four..];
                            // Groups of four rows, then the rest.
                            if let Some(out) = out.first_chunk_mut() {
                                *out = plus(*out, sums);
                            } else {
                                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn plus(a: [f32; ROWS], b: [f32; ROWS]) -> [f32; ROWS] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]
}

/// Multiplies a panel of some rows by `T` tokens.
#[inline(always)]
fn multiply_panel<S: Simd, const T: usize>(
    simd: S,
    weights: &[[[f32; 16]; ROWS]],
    xs: &[[[f32; 16]; T]],
) -> [[f32; ROWS]; T] {
    let mut sums = [[simd.splat_f32s(0.0); ROWS]; T];
    for (weights, xs) in weights.iter().zip(xs) {
        for at in 0..16 / S::F32_LANES {
            let mut x = [simd.splat_f32s(0.0); T];
            for (x, xs) in x.iter_mut().zip(xs) {
                *x = S::as_simd_f32s(xs).0[at];
            }
            for (r, weights) in weights.iter().enumerate() {
                let weights = S::as_simd_f32s(weights).0[at];
                for (sums, x) in sums.iter_mut().zip(x) {
                    sums[r] = simd.mul_add_f32s(weights, x, sums[r]);
                }
            }
        }
    }
    let mut result = [[0.0; ROWS]; T];
    for (result, sums) in result.iter_mut().zip(sums) {
        for (result, sum) in result.iter_mut().zip(sums) {
            *result = simd.reduce_sum_f32s(sum);
        }
    }
    result
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
                let matrix = Matrix::from_floats(ty, len, rows, data);
                let watch = Watch::new(&());
                let product = |x: &Value| {
                    let mut out = Value::zeros(x.rows, rows, Vec::new());
                    matmul(&watch, &matrix, 0, x, &mut out);
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
