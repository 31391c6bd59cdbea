//! The parts that IQ1_S and IQ1_M share: octets of ternary levels from one codebook, all shifted up
//! or down by 1/8.
//!
//! ```text
//! value of level q:  q - 1 + 1/8  or  q - 1 - 1/8
//! ```
//!
//! The encoder first finds the best levels without the codebook constraint: under every
//! order-preserving assignment the sorted weights fall into three runs, so it tries all pairs of
//! thresholds between the runs.

use pulp::Simd;

use crate::grids::{Costs, Grid, IQ1_S, Place};

/// Direction in which the levels of an octet are shifted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shift {
    Up,
    Down,
}

impl Shift {
    /// Returns the values of the three levels.
    #[inline(always)]
    pub fn values(self) -> [f32; 3] {
        match self {
            Self::Up => [-0.875, 0.125, 1.125],
            Self::Down => [-1.125, -0.125, 0.875],
        }
    }

    /// Returns the shift of the negated weights.
    #[inline(always)]
    pub fn reversed(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// Rank of each weight in ascending order; ties in order of position.
#[inline(always)]
pub(super) fn ranks<const N: usize>(x: &[f32; N]) -> [u32; N] {
    let mut ranks = [0; N];
    // Counting smaller elements takes more comparisons than sorting, but vectorizes.
    for (j, &other) in x.iter().enumerate() {
        for (i, (rank, &x)) in ranks.iter_mut().zip(x).enumerate() {
            *rank += u32::from((other < x) | ((other == x) & (j < i)));
        }
    }
    ranks
}

/// Assigns level 0 to the lowest ranks, then 1, then 2, by the thresholds between the runs.
#[inline(always)]
pub(super) fn levels_of_runs<const N: usize>(ranks: &[u32; N], borders: (usize, usize)) -> [u8; N] {
    let mut levels = [0; N];
    for (level, &rank) in levels.iter_mut().zip(ranks) {
        *level = (rank >= borders.0 as u32) as u8 + (rank >= borders.1 as u32) as u8;
    }
    levels
}

/// Number of second thresholds per vectorized trial.
pub(super) const LANES: usize = 16;

/// The best thresholds and shifts so far.
pub(super) struct Best {
    value: f32,
    /// Scale, index of the shift, and thresholds; `None` if no trial had a smaller error than all
    /// zeros.
    pub found: Option<(f32, usize, (usize, usize))>,
}

/// Sums of w*x*l and w*l*l under each shift, for `LANES` second thresholds.
pub(super) struct Trials<const SHIFTS: usize> {
    pub xl: [[f32; LANES]; SHIFTS],
    pub ll: [[f32; LANES]; SHIFTS],
}

impl Best {
    /// Starts the search from the value of `guess`, which gives the same result as starting from
    /// nothing but skips most of the early improvements.
    ///
    /// The best trial is at least as good as `guess`, so trials that are 1% worse do not win. They
    /// do not affect the winner either: each of the fewer than 2000 trials moves the value by a few
    /// roundings of 2^-24, so from 1% below the best value some trial must clearly beat all earlier
    /// ones, wherever the search started. Where products could overflow, and for negative weights,
    /// the search starts from nothing.
    #[inline(always)]
    pub fn worse_than<const SHIFTS: usize>(
        guess: &Trials<SHIFTS>,
        x: &[f32],
        weights: &[f32],
    ) -> Self {
        const RANGE: std::ops::Range<f32> = 1e-12..1e12;
        let (mut least, mut sum, mut energy) = (0, [0.0; 8], [0.0; 8]);
        for (x, w) in x.as_chunks::<8>().0.iter().zip(weights.as_chunks::<8>().0) {
            for i in 0..8 {
                least |= w[i].to_bits();
                sum[i] += w[i];
                energy[i] += w[i] * x[i] * x[i];
            }
        }
        let mut values = [0.0f32; LANES];
        for (xl, ll) in guess.xl.iter().zip(&guess.ll) {
            for (value, (&xl, &ll)) in values.iter_mut().zip(xl.iter().zip(ll)) {
                let new = xl * xl / ll;
                *value = if (ll > 0.0) & (new > *value) { new } else { *value };
            }
        }
        let value = values.iter().fold(0.0, |max, &v| if v > max { v } else { max });
        let ordinary = least >> 31 == 0
            && RANGE.contains(&value)
            && RANGE.contains(&sum.iter().sum())
            && RANGE.contains(&energy.iter().sum());
        Self { value: if ordinary { 0.99 * value } else { -f32::MAX }, found: None }
    }

    #[inline(always)]
    fn is_beaten_by(&self, xl: f32, ll: f32) -> bool {
        (ll > 0.0) & (xl * xl > self.value * ll)
    }

    /// Tries second thresholds starting at `second`, each under all shifts.
    #[inline(always)]
    pub fn offer<const SHIFTS: usize>(
        &mut self,
        (first, second): (usize, usize),
        Trials { xl, ll }: &Trials<SHIFTS>,
    ) {
        // Most thresholds do not improve; one byte per lane records whether any shift does.
        let mut hits = [0u8; LANES];
        for (lane, hit) in hits.iter_mut().enumerate() {
            for (xl, ll) in xl.iter().zip(ll) {
                *hit |= self.is_beaten_by(xl[lane], ll[lane]) as u8;
            }
        }
        let mut hits = u128::from_le_bytes(hits);
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize / 8 % LANES;
            let before = self.value;
            for shifts in 0..SHIFTS {
                let (xl, ll) = (xl[shifts][lane], ll[shifts][lane]);
                if self.is_beaten_by(xl, ll) {
                    let scale = xl / ll;
                    self.value = scale * xl;
                    self.found = Some((scale, shifts, (first, second + lane)));
                }
            }
            hits &= hits - 1;
            // A trial that did not beat the earlier value does not beat a larger one. But rounding
            // can decrease it and overflow can make it NaN: then all lanes are examined again.
            let grown = self.value >= before;
            if !grown {
                hits = u128::MAX.checked_shl(8 * (lane as u32 + 1)).unwrap_or(0) & ONES;
            }
        }
    }
}

/// 1 in each byte.
const ONES: u128 = u128::from_le_bytes([1; 16]);

/// Snaps all octets of a group to the codebook, each under its shift. Returns the points and the
/// scale, which is recomputed by least squares if any octet changed.
#[inline(always)]
pub(super) fn snap<S: Simd, const OCTETS: usize>(
    simd: S,
    x: &[[f32; 8]],
    weights: &[[f32; 8]],
    levels: &[[u8; 8]],
    shifts: [Shift; OCTETS],
    scale: f32,
) -> ([u16; OCTETS], f32) {
    let mut points = [0; OCTETS];
    let mut moved = false;
    let octets = x.iter().zip(weights).zip(levels.iter().zip(shifts));
    for (point, ((x, weights), (&levels, shift))) in points.iter_mut().zip(octets.clone()) {
        *point = match IQ1_S.place(IQ1_S.cell(levels)) {
            Place::Point(point) => point,
            Place::Near(near) => {
                moved = true;
                IQ1_S.point(IQ1_S.argmin(simd, near, &costs(x, weights, scale, shift)))
            }
        };
    }
    let mut sums = Sums::default();
    if moved {
        for (&point, ((x, weights), (_, shift))) in points.iter().zip(octets) {
            sums.add(x, weights, point, shift, 1.0);
        }
    }
    let fits = sums.xl > 0.0 && sums.ll > 0.0;
    (points, if fits { sums.xl / sums.ll } else { scale })
}

/// Sums of w*x*l and w*l*l; their quotient is the least-squares scale.
#[derive(Default)]
pub(super) struct Sums {
    pub xl: f32,
    pub ll: f32,
}

impl Sums {
    /// Adds an octet whose values are multiplied by `factor`.
    #[inline(always)]
    pub fn add(&mut self, x: &[f32; 8], weights: &[f32; 8], point: u16, shift: Shift, factor: f32) {
        let (values, code) = (shift.values(), IQ1_S.code(point));
        for (i, (&x, &w)) in x.iter().zip(weights).enumerate() {
            let l = values[usize::from(Grid::<8, 3, 2048>::level(code, i)) % 3] * factor;
            self.xl += w * l * x;
            self.ll += w * l * l;
        }
    }
}

/// Cost of each level at each coordinate.
#[inline(always)]
fn costs(x: &[f32; 8], weights: &[f32; 8], scale: f32, shift: Shift) -> Costs {
    let [low, middle, high] = shift.values();
    let values = [low, middle, high, 0.0];
    let mut costs = [0.0; 32];
    for (j, cost) in costs.iter_mut().enumerate() {
        let diff = scale * values[j % 4] - x[j / 4];
        *cost = weights[j / 4] * diff * diff;
    }
    costs
}

/// Decodes a codebook entry. Returns an array, so that the compiler computes all weights before it
/// stores any.
#[inline(always)]
pub(super) fn decode(d: f32, point: u16, shift: Shift) -> [f32; 8] {
    let (mut weights, shift) = ([0.0; 8], shift.values()[1]);
    let values = &IQ1_S.values[usize::from(point) % IQ1_S.values.len()];
    for (x, &value) in weights.iter_mut().zip(values) {
        *x = d * (f32::from(value) + shift);
    }
    weights
}

/// Computes weight `w` of a block from its codebook entry and shift.
pub(super) fn weight(d: f32, point: usize, down: usize, w: usize) -> f32 {
    let shift = if down == 1 { Shift::Down } else { Shift::Up };
    decode(d, point as u16, shift)[w % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_levels() {
        let ranks = ranks(&[0.5, -0.0, -1.0, 0.0]);
        assert_eq!(ranks, [3, 1, 0, 2]);
        assert_eq!(levels_of_runs(&ranks, (1, 3)), [2, 1, 0, 1]);
        assert_eq!(levels_of_runs(&ranks, (0, 0)), [2; 4]);
        assert_eq!(levels_of_runs(&ranks, (4, 4)), [0; 4]);
    }
}
