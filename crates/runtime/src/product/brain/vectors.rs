//! AVX-512: weights stored in BF16 with activations rounded to it, as llama.cpp does it.
#![expect(clippy::needless_range_loop, reason = "rows and tokens count through several arrays")]

use std::arch::x86_64::__m512;
use std::slice;

use pulp::bytemuck::cast_slice_mut;
use pulp::{NullaryFnOnce, cast};

use super::parts::{split, step};
use super::{Job, STEP};
use crate::avx512::brain::V4Brain;
use crate::product::panels::{self, ROWS, Step, Tokens, rows_of};
use crate::scratch::Scratch;
use crate::value::Value;
use crate::weight::Matrix;

/// Rows that a task has at most, with few tokens.
const MOST: usize = 128;

/// Tokens for which rows are multiplied as they stand.
const FEW: usize = 2;

/// `out = x W`.
pub(super) fn multiply(simd: V4Brain, job: Job<'_>, out: &mut Value) {
    let Job { matrix, x, .. } = job;
    let steps = x.width.div_ceil(STEP);
    if x.rows > FEW {
        let x = Tokens::new(x, steps, |row, number, panel| {
            simd.vectorize(Round { row, rounded: panel.iter_mut().map(|step| &mut step[number]) });
        });
        return job.share(rows_of(steps), out, |first, out| {
            simd.vectorize(Panels { simd, matrix, first, x: &x, out });
        });
    }
    let mut rounded = vec![[0.0; STEP / 2]; x.rows * steps];
    for (rounded, row) in rounded.chunks_exact_mut(steps.max(1)).zip(x.data.chunks_exact(x.width)) {
        simd.vectorize(Round { row, rounded: rounded.iter_mut() });
    }
    job.share(MOST, out, |first, out| {
        simd.vectorize(Task { simd, matrix, first, x: &rounded, tokens: x.rows, steps, out });
    });
}

/// A row of activations that is rounded, step by step, with zeros behind it.
struct Round<'r, R> {
    row: &'r [f32],
    rounded: R,
}

impl<'r, R: Iterator<Item = &'r mut Step>> NullaryFnOnce for Round<'r, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let mut columns = self.row.chunks(STEP);
        for rounded in self.rounded {
            let [part] = split(&step(columns.next().unwrap_or_default()));
            *rounded = cast(part);
        }
    }
}

/// Some rows of weights with all tokens; of each token `out` has a number for each row.
struct Panels<'t> {
    simd: V4Brain,
    matrix: &'t Matrix,
    first: usize,
    x: &'t Tokens,
    out: &'t mut [f32],
}

impl NullaryFnOnce for Panels<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, matrix, first, x, out } = self;
        let rows = out.len() / x.count;
        let mut weights = Scratch::new(rows.next_multiple_of(ROWS) * x.steps * (STEP / 2));
        let weights: &mut [[Step; ROWS]] = cast_slice_mut(&mut weights);
        for (number, panel) in weights.chunks_exact_mut(x.steps).enumerate() {
            for r in 0..ROWS {
                // The last stands in for those that are not there.
                let row = matrix.rows(first + (ROWS * number + r).min(rows - 1), 1);
                for (place, bytes) in panel.iter_mut().zip(row.chunks(2 * STEP)) {
                    place[r] = cast(step::<u8, { 2 * STEP }>(bytes));
                }
            }
        }
        panels::multiply(simd, weights, x, out);
    }
}

/// Some rows of weights with up to [`FEW`] tokens; of each token `out` has a number for each row.
struct Task<'t> {
    simd: V4Brain,
    matrix: &'t Matrix,
    first: usize,
    /// Of each token.
    x: &'t [Step],
    tokens: usize,
    steps: usize,
    out: &'t mut [f32],
}

impl NullaryFnOnce for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        match self.tokens {
            1 => self.tokens::<1>(),
            _ => self.tokens::<FEW>(),
        }
    }
}

impl Task<'_> {
    /// All rows with `T` tokens.
    #[inline(always)]
    fn tokens<const T: usize>(&mut self) {
        let rows = self.out.len() / self.tokens;
        let mut row = 0;
        // Memory is read fastest from one place on.
        while T > 1 && row + ROWS <= rows {
            self.rows::<ROWS, T>(row, rows);
            row += ROWS;
        }
        while row < rows {
            self.rows::<1, T>(row, rows);
            row += 1;
        }
    }

    /// `R` of the rows from one on with `T` tokens.
    #[inline(always)]
    fn rows<const R: usize, const T: usize>(&mut self, row: usize, rows: usize) {
        let Self { simd, matrix, first, x, steps, .. } = *self;
        let mut weights: [&[[u8; 2 * STEP]]; R] = [&[]; R];
        let mut rests = [[0; 2 * STEP]; R];
        let mut xs: [&[Step]; T] = [&[]; T];
        for t in 0..T {
            xs[t] = &x[t * steps..][..steps];
        }
        for r in 0..R {
            let rest;
            (weights[r], rest) = matrix.rows(first + row + r, 1).as_chunks();
            rests[r] = step(rest);
        }
        let whole = weights[0].len();
        let mut sums = [[cast([0.0_f32; STEP / 2]); T]; R];
        add(simd, weights, xs, &mut sums);
        if whole < steps {
            for r in 0..R {
                weights[r] = slice::from_ref(&rests[r]);
            }
            for t in 0..T {
                xs[t] = &xs[t][whole..];
            }
            add(simd, weights, xs, &mut sums);
        }
        for r in 0..R {
            for t in 0..T {
                self.out[t * rows + row + r] = sum(cast(sums[r][t]));
            }
        }
    }
}

/// Adds the products of rows of weights with tokens, step by step.
#[inline(always)]
fn add<const R: usize, const T: usize>(
    simd: V4Brain,
    mut weights: [&[[u8; 2 * STEP]]; R],
    mut xs: [&[Step]; T],
    sums: &mut [[__m512; T]; R],
) {
    let steps = weights[0].len();
    for r in 0..R {
        weights[r] = &weights[r][..steps];
    }
    for t in 0..T {
        xs[t] = &xs[t][..steps];
    }
    let mut made = *sums;
    for at in 0..steps {
        for r in 0..R {
            let weights = cast(weights[r][at]);
            for t in 0..T {
                made[r][t] = simd.add_pairs(made[r][t], weights, cast(xs[t][at]));
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
