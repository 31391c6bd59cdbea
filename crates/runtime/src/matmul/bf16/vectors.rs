//! AVX-512: BF16 weights with activations rounded to BF16, as in llama.cpp.
#![expect(clippy::needless_range_loop, reason = "rows and tokens count through several arrays")]

use std::arch::x86_64::{__m512, __m512i};

use pulp::bytemuck::cast_slice_mut;
use pulp::{NullaryFnOnce, cast};
use rayon::prelude::*;

use super::super::AHEAD;
use super::parts::{split, step};
use super::{Job, STEP};
use crate::avx512::bf16::V4Bf16;
use crate::matrix::Matrix;
use crate::scratch::Scratch;
use crate::value::Value;

/// Register blocking: rows and tokens whose sums fit into registers.
const ROWS: usize = 4;
const TOKENS: usize = 6;

/// Rows of weights that are interleaved for many tokens: they fit into the second-level cache.
const TILE: usize = 32;

/// Numbers of a row or a token in a step.
type Step = [u16; STEP];

/// Computes `out = x W`.
pub(super) fn multiply(simd: V4Bf16, job: Job<'_>, out: &mut Value) {
    let Job { matrix, x, .. } = job;
    let steps = x.width.div_ceil(STEP);
    let mut rounded = vec![[0; STEP]; x.rows * steps];
    // One row stays on one thread.
    let least = if x.rows == 1 { usize::MAX } else { 1 };
    let sixes = rounded.par_chunks_mut((TOKENS * steps).max(1)).with_min_len(least);
    sixes.zip(x.data.par_chunks((TOKENS * x.width).max(1))).for_each(|(rounded, x)| {
        simd.vectorize(Round { x, steps, rounded });
    });
    job.share(out, |first, out| {
        Task { simd, matrix, first, x: &rounded, tokens: x.rows, steps, out }.run();
    });
}

/// Up to [`TOKENS`] rows of rounded activations.
struct Round<'r> {
    x: &'r [f32],
    steps: usize,
    rounded: &'r mut [Step],
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

/// Returns the number of tokens to multiply together, of those that are left.
fn together(left: usize) -> usize {
    match left {
        TOKENS.. => TOKENS,
        2.. => 2,
        left => left,
    }
}

/// Some rows of weights with all tokens; `out` has a number per token and row.
struct Task<'t> {
    simd: V4Bf16,
    matrix: &'t Matrix,
    first: usize,
    /// Groups of tokens, each as `[step][token]`. They are interleaved because rows at the same offset within
    /// pages evict each other from the first-level cache.
    x: &'t [Step],
    tokens: usize,
    steps: usize,
    out: &'t mut [f32],
}

impl Task<'_> {
    fn run(mut self) {
        let simd = self.simd;
        if self.tokens < TOKENS {
            return self.groups(|task, tokens, token| match tokens {
                2 => simd.vectorize(InPlace::<2> { task, token }),
                _ => simd.vectorize(InPlace::<1> { task, token }),
            });
        }
        let mut panels = Scratch::new(TILE * self.steps * (STEP / 2));
        let panels: &mut [[Step; ROWS]] = cast_slice_mut(&mut panels);
        let rows = self.rows();
        for start in (0..rows).step_by(TILE) {
            let count = TILE.min(rows - start).div_ceil(ROWS);
            let panels = &mut panels[..count * self.steps];
            self.lay(start, panels);
            self.groups(|task, tokens, token| match tokens {
                TOKENS => simd.vectorize(Panels::<TOKENS> { task, token, start, panels }),
                2 => simd.vectorize(Panels::<2> { task, token, start, panels }),
                _ => simd.vectorize(Panels::<1> { task, token, start, panels }),
            });
        }
    }

    /// Returns the number of rows of weights.
    fn rows(&self) -> usize {
        self.out.len() / self.tokens
    }

    /// Calls a function for each group of tokens, with their number and the first one.
    fn groups(&mut self, work: impl Fn(&mut Self, usize, usize)) {
        let mut token = 0;
        while token < self.tokens {
            let tokens = together(self.tokens - token);
            work(self, tokens, token);
            token += tokens;
        }
    }

    /// Interleaves [`ROWS`] rows step by step. In the file, rows often begin at the same offset within pages and
    /// evict each other from the first-level cache.
    fn lay(&self, start: usize, panels: &mut [[Step; ROWS]]) {
        let rows = self.rows();
        for (four, panel) in panels.chunks_exact_mut(self.steps).enumerate() {
            for r in 0..ROWS.min(rows - start - ROWS * four) {
                let bytes = self.matrix.rows(self.first + start + ROWS * four + r, 1);
                for (bytes, laid) in bytes.chunks(2 * STEP).zip(panel.iter_mut()) {
                    laid[r] = cast(step::<u8, { 2 * STEP }>(bytes));
                }
            }
        }
    }
}

/// Multiplies panels of rows by `T` tokens.
struct Panels<'p, 't, const T: usize> {
    task: &'p mut Task<'t>,
    token: usize,
    start: usize,
    panels: &'p [[Step; ROWS]],
}

impl<const T: usize> NullaryFnOnce for Panels<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { task, token, start, panels } = self;
        let rows = task.rows();
        let Task { simd, x, steps, .. } = *task;
        let xs = x[token * steps..][..T * steps].as_chunks().0;
        for (four, panel) in panels.chunks_exact(steps).enumerate() {
            let mut sums = [[cast([0.0_f32; STEP / 2]); T]; ROWS];
            for (laid, x) in panel.iter().zip(xs) {
                let mut weights = [cast([0_u16; STEP]); ROWS];
                for r in 0..ROWS {
                    weights[r] = cast(laid[r]);
                }
                add(simd, weights, x, &mut sums);
            }
            for t in 0..T {
                let totals = simd.totals([sums[0][t], sums[1][t], sums[2][t], sums[3][t]]);
                let out = &mut task.out[(token + t) * rows..][start + ROWS * four..rows];
                // Groups of four rows, then the rest.
                if let Some(out) = out.first_chunk_mut() {
                    *out = totals;
                } else {
                    out.iter_mut().zip(totals).for_each(|(out, total)| *out = total);
                }
            }
        }
    }
}

/// Multiplies all rows in place by `T` tokens, one after the other: memory is read fastest as one stream.
struct InPlace<'p, 't, const T: usize> {
    task: &'p mut Task<'t>,
    token: usize,
}

impl<const T: usize> NullaryFnOnce for InPlace<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { task, token } = self;
        let rows = task.rows();
        let Task { simd, matrix, first, x, steps, .. } = *task;
        let xs = x[token * steps..][..T * steps].as_chunks().0;
        let weights = matrix.rows(first, rows);
        for row in 0..rows {
            let (whole, rest) = weights[row * matrix.row_bytes..][..matrix.row_bytes].as_chunks();
            let mut sums = [[cast([0.0_f32; STEP / 2]); T]];
            for (weights, x) in whole.iter().zip(xs) {
                simd.prefetch(weights.as_ptr().wrapping_add(AHEAD));
                add(simd, [cast::<[u8; 2 * STEP], _>(*weights)], x, &mut sums);
            }
            if let Some(x) = xs.get(whole.len()) {
                add(simd, [cast(step::<u8, { 2 * STEP }>(rest))], x, &mut sums);
            }
            for t in 0..T {
                task.out[(token + t) * rows + row] = sum(cast(sums[0][t]));
            }
        }
    }
}

/// Adds the products of a step.
#[inline(always)]
fn add<const R: usize, const T: usize>(
    simd: V4Bf16,
    weights: [__m512i; R],
    x: &[Step; T],
    sums: &mut [[__m512; T]; R],
) {
    for t in 0..T {
        let x = cast(x[t]);
        for r in 0..R {
            sums[r][t] = simd.add_pairs(sums[r][t], weights[r], x);
        }
    }
}

/// Returns the sum of 16 numbers: the upper half is added to the lower one until one is left.
#[inline(always)]
fn sum(mut sums: [f32; 16]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[half + i];
        }
    }
    sums[0]
}
