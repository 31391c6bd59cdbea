//! AVX-512: weights stored in BF16 with activations rounded to it, as llama.cpp does it.
#![expect(clippy::needless_range_loop, reason = "rows and tokens count through several arrays")]

use std::arch::x86_64::__m512;
use std::slice;

use pulp::{NullaryFnOnce, cast};
use rayon::prelude::*;

use super::parts::{split, step};
use super::{Job, STEP};
use crate::avx512::brain::V4Brain;
use crate::value::Value;
use crate::weight::Matrix;

/// Rows and tokens whose sums fit into registers.
const ROWS: usize = 4;
const TOKENS: usize = 6;

/// `out = x W`.
pub(super) fn multiply(simd: V4Brain, job: Job<'_>, out: &mut Value) {
    let Job { matrix, x, .. } = job;
    let steps = x.width.div_ceil(STEP);
    let mut rounded = vec![[0; STEP]; x.rows * steps];
    // A single row is not worth waking other threads.
    let least = if x.rows == 1 { usize::MAX } else { 1 };
    let sixes = rounded.par_chunks_mut((TOKENS * steps).max(1)).with_min_len(least);
    sixes.zip(x.data.par_chunks((TOKENS * x.width).max(1))).for_each(|(rounded, x)| {
        simd.vectorize(Round { x, steps, rounded });
    });
    job.share(out, |first, out| {
        simd.vectorize(Task { simd, matrix, first, x: &rounded, tokens: x.rows, steps, out });
    });
}

/// Up to [`TOKENS`] rows of activations that are rounded.
struct Round<'r> {
    x: &'r [f32],
    steps: usize,
    rounded: &'r mut [[u16; STEP]],
}

impl NullaryFnOnce for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { x, steps, mut rounded } = self;
        let (mut rows, width) = (x, x.len() / (rounded.len() / steps));
        while !rows.is_empty() {
            let tokens = together(rows.len() / width);
            let (group, rest) = rounded.split_at_mut(tokens * steps);
            rounded = rest;
            let (of_group, rest) = rows.split_at(tokens * width);
            rows = rest;
            for (t, x) in of_group.chunks_exact(width).enumerate() {
                for (x, rounded) in x.chunks(STEP).zip(group.iter_mut().skip(t).step_by(tokens)) {
                    [*rounded] = split(&step(x));
                }
            }
        }
    }
}

/// How many of the tokens that are left are multiplied together.
fn together(left: usize) -> usize {
    match left {
        TOKENS.. => TOKENS,
        2.. => 2,
        left => left,
    }
}

/// Some rows of weights with all tokens; of each token `out` has a number for each row.
struct Task<'t> {
    simd: V4Brain,
    matrix: &'t Matrix,
    first: usize,
    /// `[step][token]` of the tokens that are multiplied together, then of the next. Side by side, since rows
    /// that begin at the same place of a page take each other's places in the first-level cache.
    x: &'t [[u16; STEP]],
    tokens: usize,
    steps: usize,
    out: &'t mut [f32],
}

impl NullaryFnOnce for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let mut token = 0;
        while token < self.tokens {
            let tokens = together(self.tokens - token);
            match tokens {
                TOKENS => self.tokens::<TOKENS>(token),
                2 => self.tokens::<2>(token),
                _ => self.tokens::<1>(token),
            }
            token += tokens;
        }
    }
}

impl Task<'_> {
    /// All rows with `T` tokens from one on.
    #[inline(always)]
    fn tokens<const T: usize>(&mut self, token: usize) {
        let rows = self.out.len() / self.tokens;
        let mut row = 0;
        while row + ROWS <= rows {
            self.rows::<ROWS, T>(row, token, rows);
            row += ROWS;
        }
        while row < rows {
            self.rows::<1, T>(row, token, rows);
            row += 1;
        }
    }

    /// `R` of the rows from one on with `T` tokens.
    #[inline(always)]
    fn rows<const R: usize, const T: usize>(&mut self, row: usize, token: usize, rows: usize) {
        let Self { simd, matrix, first, x, steps, .. } = *self;
        let mut weights: [&[[u8; 2 * STEP]]; R] = [&[]; R];
        let mut rests = [[0; 2 * STEP]; R];
        let xs = x[token * steps..][..T * steps].as_chunks().0;
        for r in 0..R {
            let rest;
            (weights[r], rest) = matrix.rows(first + row + r, 1).as_chunks();
            rests[r] = step(rest);
        }
        let whole = weights[0].len();
        let mut sums = [[cast([0.0_f32; STEP / 2]); T]; R];
        // What comes next, of which a processor itself looks no further than a page.
        let ahead = if T == 1 { R * matrix.row_bytes } else { 0 };
        add(simd, weights, &xs[..whole], ahead, &mut sums);
        if whole < steps {
            for r in 0..R {
                weights[r] = slice::from_ref(&rests[r]);
            }
            add(simd, weights, &xs[whole..], 0, &mut sums);
        }
        for r in 0..R {
            for t in 0..T {
                self.out[(token + t) * rows + row + r] = sum(cast(sums[r][t]));
            }
        }
    }
}

/// Adds the products of rows of weights with tokens, step by step. Asks for what stands `ahead` bytes behind
/// weights, if that is not 0.
#[inline(always)]
fn add<const R: usize, const T: usize>(
    simd: V4Brain,
    mut weights: [&[[u8; 2 * STEP]]; R],
    xs: &[[[u16; STEP]; T]],
    ahead: usize,
    sums: &mut [[__m512; T]; R],
) {
    for r in 0..R {
        weights[r] = &weights[r][..xs.len()];
    }
    let mut made = *sums;
    for (at, x) in xs.iter().enumerate() {
        for r in 0..R {
            if ahead != 0 {
                simd.prefetch(weights[r][at].as_ptr().wrapping_add(ahead));
            }
            let weights = cast(weights[r][at]);
            for t in 0..T {
                made[r][t] = simd.add_pairs(made[r][t], weights, cast(x[t]));
            }
        }
    }
    *sums = made;
}

/// The sum of 16 numbers: the upper half is added to the lower one until one is left.
#[inline(always)]
fn sum(mut sums: [f32; 16]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[half + i];
        }
    }
    sums[0]
}
