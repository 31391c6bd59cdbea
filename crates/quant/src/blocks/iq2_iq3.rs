//! The parts that the IQ2 and IQ3 types share: magnitudes from a codebook (`grids`), separate
//! signs, super-blocks of 256 in groups of 16 or 32 with 4-bit scales.
//!
//! ```text
//! signs of an octet: bit i is set if x[i] is negative
//!                    "even" types store bits 0 to 6; bit 7 is such that an even number is set
//! ```
//!
//! In an octet with an odd number of negative weights, the sign of the least important weight is
//! flipped.
//!
//! The searches follow `quantize_row_iq2_xxs_impl` and its counterparts for the other types.

use half::f16;
use pulp::Simd;

use super::unconstrained_scale::unconstrained_scale;
use crate::grids::{Grid, Place};
use crate::search;

/// A super-block before packing.
pub(super) struct SuperBlock<const POINTS: usize, const GROUPS: usize> {
    pub d: f16,
    /// Group scales, in 0..16.
    pub scales: [u8; GROUPS],
    /// Index of the codebook entry of each octet or quartet.
    pub points: [u16; POINTS],
    /// Signs of each octet, all eight bits.
    pub signs: [u8; 32],
}

/// Differences between the formats.
pub(super) struct Format<const DIM: usize, const LEVELS: usize, const N: usize> {
    pub grid: &'static Grid<DIM, LEVELS, N>,
    /// Whether octets have an even number of negative signs.
    pub even_signs: bool,
    /// Groups with a maximum magnitude below this are stored as zeros.
    pub zero_group: f32,
    /// Whether to fit levels `0..=LEVELS + 1` without a codebook first and search around that
    /// scale, instead of the scale that maps the largest magnitude to the last level.
    pub fit_first: bool,
    /// Step between trials, in units of half a level at the end of the range.
    pub step: f32,
    /// WeightFields whose codebook entry is chosen again once the best scale is known.
    pub refit: Refit,
    /// Empirical correction factor of the scale, from ggml.
    pub correction: f32,
}

#[derive(PartialEq)]
pub(super) enum Refit {
    /// WeightFields whose cell is not a point of the codebook.
    OffGrid,
    /// All parts, if any cell is not a point of the codebook.
    AllIfAnyOffGrid,
    /// All parts.
    All,
}

/// Maximum number of octets or quartets per group.
const MAX_PARTS: usize = 8;

impl<const DIM: usize, const LEVELS: usize, const N: usize> Format<DIM, LEVELS, N> {
    /// Finds scales, points and signs, with `TRIALS` trial scales for each group of `GROUP`
    /// weights. The trials are the first of `LANES`, which fill whole vectors.
    #[inline(always)]
    pub fn encode<
        S: Simd,
        const GROUP: usize,
        const TRIALS: usize,
        const LANES: usize,
        const POINTS: usize,
        const GROUPS: usize,
    >(
        &self,
        simd: S,
        x: &[f32; 256],
        weights: &[f32; 256],
    ) -> SuperBlock<POINTS, GROUPS> {
        const {
            assert!(POINTS * DIM == 256 && GROUPS * GROUP == 256 && GROUP <= MAX_PARTS * DIM);
            assert!(TRIALS <= LANES);
        }
        let mut block =
            SuperBlock { d: f16::ZERO, scales: [0; GROUPS], points: [0; POINTS], signs: [0; 32] };
        let mut scales = [0.0; GROUPS];
        let groups = x.as_chunks::<GROUP>().0.iter().zip(weights.as_chunks::<GROUP>().0);
        let found = block.points.chunks_exact_mut(GROUP / DIM);
        let found = found.zip(block.signs.chunks_exact_mut(GROUP / 8));
        for (((x, weights), (points, signs)), scale) in groups.zip(found).zip(&mut scales) {
            *scale = self.fit::<S, GROUP, TRIALS, LANES>(simd, x, weights, points, signs);
        }
        let max = scales.iter().fold(0.0, |max, &v| if max > v { max } else { v });
        if max == 0.0 {
            // llama.cpp's encoder clears the whole block only for these formats.
            if self.even_signs {
                (block.points, block.signs) = ([0; POINTS], [0; 32]);
            }
            return block;
        }
        let d = max / 31.0;
        block.d = f16::from_f32(d * self.correction);
        let inverse = 1.0 / d;
        for (level, scale) in block.scales.iter_mut().zip(scales) {
            *level = search::nearest(0.5 * (inverse * scale - 1.0)).clamp(0, 15) as u8;
        }
        block
    }

    /// Finds scale, points and signs of a group. Those of an all-zero group stay 0.
    #[inline(always)]
    fn fit<S: Simd, const GROUP: usize, const TRIALS: usize, const LANES: usize>(
        &self,
        simd: S,
        x: &[f32; GROUP],
        weights: &[f32; GROUP],
        points: &mut [u16],
        signs: &mut [u8],
    ) -> f32 {
        let (magnitudes, mut found_signs) = self.split_signs(x, weights);
        let max = magnitudes[1..].iter().fold(magnitudes[0], |m, &v| if m > v { m } else { v });
        if max < self.zero_group {
            return 0.0;
        }
        let last = (2 * LEVELS - 1) as f32;
        let (mut scale, reach) = if self.fit_first {
            let scale = unconstrained_scale(LEVELS as i32 + 1, max, &magnitudes, weights);
            (scale, scale * LEVELS as f32)
        } else {
            (max / last, max)
        };
        if reach <= 0.0 {
            return 0.0;
        }
        let mut roots = [0.0; GROUP];
        roots.iter_mut().zip(weights).for_each(|(root, w)| *root = w.sqrt());
        let (mut inverses, mut trial_scales) = ([0.0; LANES], [0.0; LANES]);
        for (t, (inverse, scale)) in inverses.iter_mut().zip(&mut trial_scales).enumerate() {
            *inverse = (last + (t as f32 - (TRIALS / 2) as f32) * self.step) / reach;
            *scale = 1.0 / *inverse;
        }

        // All trials at once: each keeps the order of its sums, and the compiler vectorizes them.
        // Sums of w*x*l and w*l*l; their quotient is the least-squares scale.
        let (mut sum_xl, mut sum_ll) = ([0.0; LANES], [0.0; LANES]);
        let mut trials = [([0; LANES], [false; LANES]); MAX_PARTS];
        let parts = magnitudes.as_chunks::<DIM>().0.iter().zip(roots.as_chunks::<DIM>().0);
        let part_weights = weights.as_chunks::<DIM>().0;
        for (((x, roots), weights), trial) in parts.clone().zip(part_weights).zip(&mut trials) {
            *trial = self.snap::<S, TRIALS, LANES>(simd, x, roots, &inverses, &trial_scales);
            for (i, (&x, &w)) in x.iter().zip(weights).enumerate() {
                let sums = sum_xl.iter_mut().zip(&mut sum_ll);
                for ((xl, ll), &code) in sums.zip(&trial.0) {
                    let l = Self::odd_level(code, i);
                    *xl += w * x * l;
                    *ll += w * l * l;
                }
            }
        }
        let (mut best, mut chosen) = (0.0, None);
        for (t, (&xl, &ll)) in sum_xl.iter().zip(&sum_ll).enumerate().take(TRIALS) {
            if ll > 0.0 && xl * xl > best * ll {
                scale = xl / ll;
                best = scale * xl;
                chosen = Some(t);
            }
        }
        // If no trial wins, all levels are 0: point 0 of every codebook, with code 0.
        let mut codes = [0; MAX_PARTS];
        let mut on_grid = [self.refit == Refit::OffGrid; MAX_PARTS];
        if let Some(t) = chosen {
            for ((code, on_grid), trial) in codes.iter_mut().zip(&mut on_grid).zip(&trials) {
                (*code, *on_grid) = (trial.0[t], trial.1[t]);
            }
        }

        let off_grid = on_grid[..points.len()].contains(&false);
        if scale > 0.0 && (off_grid || self.refit == Refit::All) {
            for ((code, on_grid), (x, roots)) in codes.iter_mut().zip(on_grid).zip(parts) {
                if !on_grid || self.refit != Refit::OffGrid {
                    *code = self.snap::<S, 1, 1>(simd, x, roots, &[1.0 / scale], &[scale]).0[0];
                }
            }
            let (mut xl, mut ll) = (0.0, 0.0);
            for (i, (&x, &w)) in magnitudes.iter().zip(weights).enumerate() {
                let l = Self::odd_level(codes[i / DIM], i % DIM);
                xl += w * x * l;
                ll += w * l * l;
            }
            if ll > 0.0 {
                scale = xl / ll;
            }
        }
        for (point, code) in points.iter_mut().zip(codes) {
            *point = self.grid.point(code as u16);
        }
        if scale < 0.0 {
            scale = -scale;
            found_signs = found_signs.map(|s| !s);
        }
        signs.copy_from_slice(&found_signs[..signs.len()]);
        // llama.cpp's encoder aborts if the scale is NaN (the sums overflowed).
        if scale.is_nan() { 0.0 } else { scale }
    }

    /// Splits each octet into magnitudes and signs. To make the number of negative signs even, the
    /// sign of the least important weight is flipped; its magnitude then counts as negative.
    #[inline(always)]
    fn split_signs<const GROUP: usize>(
        &self,
        x: &[f32; GROUP],
        weights: &[f32; GROUP],
    ) -> ([f32; GROUP], [u8; 4]) {
        let mut magnitudes = *x;
        magnitudes.iter_mut().for_each(|x| *x = if *x >= 0.0 { *x } else { -*x });
        let mut signs = [0u8; 4];
        let octets = x.as_chunks::<8>().0.iter().zip(weights.as_chunks::<8>().0);
        for ((signs, magnitudes), (x, w)) in
            signs.iter_mut().zip(magnitudes.as_chunks_mut::<8>().0).zip(octets)
        {
            *signs = x.iter().rev().fold(0, |bits, x| bits << 1 | (*x < 0.0) as u8);
            if self.even_signs && signs.count_ones() % 2 == 1 {
                let mut least = 0;
                for i in 1..8 {
                    if w[i] * x[i] * x[i] < w[least] * x[least] * x[least] {
                        least = i;
                    }
                }
                magnitudes[least] = -magnitudes[least];
                *signs ^= 1 << least;
            }
        }
        (magnitudes, signs)
    }

    /// Returns the code of the best codebook entry under each scale, and whether plain rounding
    /// yielded it.
    #[inline(always)]
    fn snap<S: Simd, const TRIALS: usize, const LANES: usize>(
        &self,
        simd: S,
        x: &[f32; DIM],
        roots: &[f32; DIM],
        inverses: &[f32; LANES],
        scales: &[f32; LANES],
    ) -> ([u32; LANES], [bool; LANES]) {
        let mut cells = [0i32; LANES];
        for &x in x.iter().rev() {
            for (cell, inverse) in cells.iter_mut().zip(inverses) {
                let level = search::nearest(0.5 * (inverse * x - 1.0));
                *cell = *cell * LEVELS as i32 + level.clamp(0, LEVELS as i32 - 1);
            }
        }
        // Cost of each level at each coordinate (see `Costs`). llama.cpp's encoders weight it by
        // the square root of the weight.
        let levels = 32 / DIM;
        let (mut xs, mut ws, mut odd) = ([0.0; 32], [0.0; 32], [0.0; 32]);
        for j in 0..32 {
            (xs[j], ws[j], odd[j]) =
                (x[j / levels], roots[j / levels], (2 * (j % levels) + 1) as f32);
        }
        let (mut codes, mut on_grid) = ([0; LANES], [true; LANES]);
        for (t, (&cell, &scale)) in cells.iter().zip(scales).enumerate().take(TRIALS) {
            codes[t] = u32::from(match self.grid.place(cell as usize) {
                Place::Point(point) => self.grid.code(point),
                Place::Near(near) => {
                    on_grid[t] = false;
                    let mut costs = [0.0; 32];
                    for j in 0..32 {
                        let diff = scale * odd[j] - xs[j];
                        costs[j] = ws[j] * diff * diff;
                    }
                    self.grid.argmin(simd, near, &costs)
                }
            });
        }
        (codes, on_grid)
    }

    /// A level as the search counts it: 1, 3, 5 ...
    #[inline(always)]
    fn odd_level(code: u32, i: usize) -> f32 {
        let bits = (32 / DIM).ilog2() as usize;
        let level = code as i32 >> (bits * i) & (32 / DIM as i32 - 1);
        (2 * level + 1) as f32
    }
}

/// Restores the eight signs of an octet from its 7 stored bits.
#[inline(always)]
pub(super) fn even_signs(stored: u8) -> u8 {
    stored | (stored.count_ones() as u8 & 1) << 7
}

/// Decodes a codebook entry. Returns an array, so that the compiler computes all weights before it
/// stores any.
#[inline(always)]
pub(super) fn decode<const DIM: usize>(d: f32, values: &[i8; DIM], signs: u8) -> [f32; DIM] {
    let mut weights = [0.0; DIM];
    for (i, (x, &value)) in weights.iter_mut().zip(values).enumerate() {
        let sign = u32::from(signs >> i & 1) << 31;
        *x = f32::from_bits((d * f32::from(value)).to_bits() ^ sign);
    }
    weights
}

/// Computes weight `w` of a block from its codebook entry and signs.
pub(super) fn weight<const DIM: usize>(d: f32, values: &[i8; DIM], signs: u8, w: usize) -> f32 {
    let x = d * f32::from(values[w % DIM]);
    if signs >> (w % 8) & 1 == 1 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_signs_become_even() {
        assert_eq!([0, 1, 2, 3, 0x7f].map(even_signs), [0, 0x81, 0x82, 3, 0xff]);
    }
}
