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
    let rows = rounded.par_chunks_mut(steps.max(1)).with_min_len(least);
    rows.zip(x.data.par_chunks(x.width.max(1))).for_each(|(rounded, x)| {
        simd.vectorize(Round { x, rounded });
    });
    job.share(out, |first, out| {
        simd.vectorize(Task { simd, matrix, first, x: &rounded, tokens: x.rows, steps, out });
    });
}

/// A row of activations that is rounded.
struct Round<'r> {
    x: &'r [f32],
    rounded: &'r mut [[u16; STEP]],
}

impl NullaryFnOnce for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (x, rounded) in self.x.chunks(STEP).zip(self.rounded) {
            [*rounded] = split(&step(x));
        }
    }
}

/// Some rows of weights with all tokens; of each token `out` has a number for each row.
struct Task<'t> {
    simd: V4Brain,
    matrix: &'t Matrix,
    first: usize,
    /// `[token][step]`.
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
        while token + TOKENS <= self.tokens {
            self.tokens::<TOKENS>(token);
            token += TOKENS;
        }
        while token + 2 <= self.tokens {
            self.tokens::<2>(token);
            token += 2;
        }
        if token < self.tokens {
            self.tokens::<1>(token);
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
        let mut xs: [&[[u16; STEP]]; T] = [&[]; T];
        for r in 0..R {
            let rest;
            (weights[r], rest) = matrix.rows(first + row + r, 1).as_chunks();
            rests[r] = step(rest);
        }
        for t in 0..T {
            xs[t] = &x[(token + t) * steps..][..steps];
        }
        let whole = weights[0].len();
        let mut sums = add(simd, weights, xs, [[cast([0.0_f32; STEP / 2]); T]; R]);
        if whole < steps {
            for r in 0..R {
                weights[r] = slice::from_ref(&rests[r]);
            }
            for t in 0..T {
                xs[t] = &xs[t][whole..];
            }
            sums = add(simd, weights, xs, sums);
        }
        for r in 0..R {
            for t in 0..T {
                self.out[(token + t) * rows + row + r] = sum(cast(sums[r][t]));
            }
        }
    }
}

/// Adds the products of rows of weights with tokens, step by step.
#[inline(always)]
fn add<const R: usize, const T: usize>(
    simd: V4Brain,
    mut weights: [&[[u8; 2 * STEP]]; R],
    mut xs: [&[[u16; STEP]]; T],
    mut sums: [[__m512; T]; R],
) -> [[__m512; T]; R] {
    let steps = weights[0].len();
    for r in 0..R {
        weights[r] = &weights[r][..steps];
    }
    for t in 0..T {
        xs[t] = &xs[t][..steps];
    }
    for at in 0..steps {
        for r in 0..R {
            let weights = cast(weights[r][at]);
            for t in 0..T {
                sums[r][t] = simd.add_pairs(sums[r][t], weights, cast(xs[t][at]));
            }
        }
    }
    sums
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
