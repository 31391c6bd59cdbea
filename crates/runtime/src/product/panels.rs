//! Products of many rows of weights with many tokens. Rows that are multiplied together stand side by side
//! step by step, and so do tokens: a panel is read from one place on, and no two rows want the same place of a
//! cache, as they do where they begin a page apart.
//!
//! Of a row and a token there are as many partial sums as an instruction adds to, over all steps; then their sum.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m512;

use pulp::Simd;
use pulp::bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use pulp::cast;
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::avx512::{self, V4Products, brain::V4Brain};
use crate::prefetch::prefetch;
use crate::scratch::Scratch;
use crate::value::Value;

/// What a line of the cache holds of a row: sixteen floats, or as many pairs in BF16.
pub(super) type Step = [f32; 16];

/// Rows of a panel of weights.
pub(super) const ROWS: usize = 4;

/// Tokens of a panel.
pub(super) const TOKENS: usize = 6;

/// Rows whose panels are made together, at least and at most.
const TILE: usize = 16;
const MOST: usize = 64;

/// Steps of a piece: that many of [`NEAR`] panels of weights and one of tokens stay in the first-level cache.
const PIECE: usize = 24;

/// Panels of weights that stay there.
const NEAR: usize = 2;

/// Panels of tokens whose sums, and steps of a piece, stay in the second-level cache.
const BLOCK: usize = 6;

/// Bytes of panels of weights that stay there, with all columns.
const PANELS: usize = 3 << 17;

/// Rows whose panels are made together, where there are so many.
pub(super) fn rows_of(steps: usize) -> usize {
    (PANELS / (size_of::<Step>() * steps.max(1)) / TILE * TILE).clamp(TILE, MOST)
}

/// What adds products of steps.
pub(super) trait Adder: Copy {
    /// Partial sums of a row and a token.
    type Sums: Pod;

    /// Whether all sums of two panels fit into registers; of half of the tokens they always do.
    const WHOLE: bool;

    /// Adds the products of a step of rows with one of tokens.
    fn add<const T: usize>(
        self,
        weights: &[Step; ROWS],
        x: &[Step; T],
        sums: &mut [[Self::Sums; ROWS]; T],
    );

    /// The sums of the partial sums of each row.
    fn totals(self, sums: [Self::Sums; ROWS]) -> [f32; ROWS];
}

/// Floats, in vectors of any length.
#[derive(Clone, Copy)]
pub(super) struct Floats<S>(pub S);

impl<S: Simd> Adder for Floats<S> {
    type Sums = S::f32s;

    const WHOLE: bool = S::REGISTER_COUNT >= 32;

    #[inline(always)]
    fn add<const T: usize>(
        self,
        weights: &[Step; ROWS],
        x: &[Step; T],
        sums: &mut [[S::f32s; ROWS]; T],
    ) {
        for at in 0..16 / S::F32_LANES {
            let mut of_tokens = [self.0.splat_f32s(0.0); T];
            for (of_token, x) in of_tokens.iter_mut().zip(x) {
                *of_token = S::as_simd_f32s(x).0[at];
            }
            for (r, weights) in weights.iter().enumerate() {
                let weights = S::as_simd_f32s(weights).0[at];
                for (sums, x) in sums.iter_mut().zip(of_tokens) {
                    sums[r] = self.0.mul_add_f32s(weights, x, sums[r]);
                }
            }
        }
    }

    #[inline(always)]
    fn totals(self, sums: [S::f32s; ROWS]) -> [f32; ROWS] {
        let mut totals = [0.0; ROWS];
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = self.0.reduce_sum_f32s(sums);
        }
        totals
    }
}

#[cfg(target_arch = "x86_64")]
impl Adder for V4Products {
    type Sums = __m512;

    const WHOLE: bool = true;

    #[inline(always)]
    fn add<const T: usize>(
        self,
        weights: &[Step; ROWS],
        x: &[Step; T],
        sums: &mut [[__m512; ROWS]; T],
    ) {
        for (r, weights) in weights.iter().enumerate() {
            let weights = cast(*weights);
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[r] = self.avx512f._mm512_fmadd_ps(weights, cast(*x), sums[r]);
            }
        }
    }

    #[inline(always)]
    fn totals(self, sums: [__m512; ROWS]) -> [f32; ROWS] {
        avx512::totals(self.avx512f, sums)
    }
}

#[cfg(target_arch = "x86_64")]
impl Adder for V4Brain {
    type Sums = __m512;

    const WHOLE: bool = true;

    #[inline(always)]
    fn add<const T: usize>(
        self,
        weights: &[Step; ROWS],
        x: &[Step; T],
        sums: &mut [[__m512; ROWS]; T],
    ) {
        for (r, weights) in weights.iter().enumerate() {
            let weights = cast(*weights);
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[r] = self.add_pairs(sums[r], weights, cast(*x));
            }
        }
    }

    #[inline(always)]
    fn totals(self, sums: [__m512; ROWS]) -> [f32; ROWS] {
        V4Brain::totals(self, sums)
    }
}

/// Tokens as panels.
pub(super) struct Tokens {
    pub count: usize,
    pub steps: usize,
    data: Scratch,
}

impl Tokens {
    /// Rows of so many steps, each of which `lay` puts among those of a panel. There are zeros where there is no token.
    pub fn new(
        x: &Value,
        steps: usize,
        lay: impl Fn(&[f32], usize, &mut [[Step; TOKENS]]) + Sync,
    ) -> Self {
        let len = TOKENS * steps * 16;
        let mut data = Scratch::new(x.rows.div_ceil(TOKENS) * len);
        let rows = x.data.par_chunks(TOKENS * x.width);
        data.par_chunks_mut(len).zip(rows).for_each(|(panel, rows)| {
            let panel = cast_slice_mut(panel);
            let mut rows = rows.chunks_exact(x.width);
            for number in 0..TOKENS {
                lay(rows.next().unwrap_or_default(), number, panel);
            }
        });
        Self { count: x.rows, steps, data }
    }

    fn panels(&self) -> &[[Step; TOKENS]] {
        cast_slice(&self.data)
    }
}

/// The products of rows with tokens: of each token `out` has a number for each row, `weights` are panels of rows.
#[inline(always)]
pub(super) fn multiply<A: Adder>(adder: A, weights: &[[Step; ROWS]], x: &Tokens, out: &mut [f32]) {
    let (steps, rows) = (x.steps, out.len() / x.count);
    let fours = weights.len() / steps;
    let mut kept = Scratch::new(BLOCK * fours * size_of::<[[A::Sums; ROWS]; TOKENS]>() / 4);
    let kept: &mut [A::Sums] = cast_slice_mut(&mut kept);
    let kept: &mut [[[A::Sums; ROWS]; TOKENS]] = kept.as_chunks_mut().0.as_chunks_mut().0;
    for (x, out) in x.panels().chunks(BLOCK * steps).zip(out.chunks_mut(BLOCK * TOKENS * rows)) {
        for start in (0..steps).step_by(PIECE) {
            let end = steps.min(start + PIECE);
            for near in (0..fours).step_by(NEAR) {
                let panels = x.chunks_exact(steps).zip(kept.chunks_exact_mut(fours));
                for ((x, kept), out) in panels.zip(out.chunks_mut(TOKENS * rows)) {
                    for four in near..fours.min(near + NEAR) {
                        let sums = &mut kept[four];
                        if start == 0 {
                            *sums = Zeroable::zeroed();
                        }
                        let weights = &weights[four * steps..][start..end];
                        add(adder, weights, &x[start..end], TOKENS * steps, sums);
                        if end == steps {
                            put(adder, sums, four, rows, out);
                        }
                    }
                }
            }
        }
    }
}

/// Adds the products of a piece of some rows with some tokens, and brings the same of the next tokens nearer, which
/// is so many steps ahead.
#[inline(always)]
fn add<A: Adder>(
    adder: A,
    weights: &[[Step; ROWS]],
    x: &[[Step; TOKENS]],
    ahead: usize,
    sums: &mut [[A::Sums; ROWS]; TOKENS],
) {
    if A::WHOLE {
        return add_tokens::<A, TOKENS>(adder, weights, x, 0, ahead, sums);
    }
    for (half, sums) in sums.as_chunks_mut().0.iter_mut().enumerate() {
        add_tokens::<A, { TOKENS / 2 }>(adder, weights, x, half, ahead, sums);
    }
}

/// The same for `T` of the tokens.
#[inline(always)]
fn add_tokens<A: Adder, const T: usize>(
    adder: A,
    weights: &[[Step; ROWS]],
    x: &[[Step; TOKENS]],
    part: usize,
    ahead: usize,
    sums: &mut [[A::Sums; ROWS]; T],
) {
    let mut made = *sums;
    for (weights, x) in weights.iter().zip(x) {
        let x: &[Step; T] = &x.as_chunks().0[part];
        for step in x {
            prefetch(std::ptr::from_ref(step).wrapping_add(ahead));
        }
        adder.add(weights, x, &mut made);
    }
    *sums = made;
}

/// Puts the sums of a panel of weights with one of tokens where they belong.
#[inline(always)]
fn put<A: Adder>(
    adder: A,
    sums: &[[A::Sums; ROWS]; TOKENS],
    four: usize,
    rows: usize,
    out: &mut [f32],
) {
    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(rows)) {
        let (out, totals) = (&mut out[ROWS * four..], adder.totals(*sums));
        // Four together where there are four.
        if let Some(out) = out.first_chunk_mut() {
            *out = totals;
        } else {
            out.iter_mut().zip(totals).for_each(|(out, total)| *out = total);
        }
    }
}

/// Puts a row where it belongs among those of a panel, with zeros behind it.
#[inline(always)]
pub(super) fn lay<const N: usize>(row: &[f32], number: usize, panel: &mut [[Step; N]]) {
    let (whole, rest) = row.as_chunks();
    let mut steps = panel.iter_mut();
    for (row, step) in whole.iter().zip(&mut steps) {
        step[number] = *row;
    }
    if let Some(step) = steps.next() {
        step[number] = filled(rest);
    }
    steps.for_each(|step| step[number] = [0.0; 16]);
}

/// The first numbers of a step, and zeros.
#[inline(always)]
pub(super) fn filled(numbers: &[f32]) -> Step {
    let mut step = [0.0; 16];
    step[..numbers.len()].copy_from_slice(numbers);
    step
}
