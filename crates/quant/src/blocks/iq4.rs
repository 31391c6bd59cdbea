//! The value table and scale search that IQ4_NL and IQ4_XS share: 4-bit levels index a non-linear
//! table of 16 values.

use pulp::Simd;

use crate::lanes::{self, Lanes, Steps};
use crate::search;
use crate::value_tables::IQ4;

/// Thresholds between levels; a threshold belongs to the level above it.
const THRESHOLDS: [f32; 15] = {
    let mut thresholds = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        thresholds[n] = (IQ4[n] as i32 + IQ4[n + 1] as i32) as f32 / 2.0;
        n += 1;
    }
    thresholds
};

/// Rounds a number to the nearest value.
const NEAREST_VALUE: Steps = {
    let mut below = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        below[n] = IQ4[n] as f32;
        n += 1;
    }
    Steps::new(&THRESHOLDS, &below, IQ4[15] as f32)
};

/// Returns the level of the nearest value.
const NEAREST_LEVEL: Steps = {
    let mut below = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        below[n] = n as f32;
        n += 1;
    }
    Steps::new(&THRESHOLDS, &below, 15.0)
};

/// Computes the level of each weight under a scale; an inverse of 0 stands for the scale 0.
#[inline(always)]
pub(super) fn levels<S: Simd>(simd: S, x: &[f32; 32], scale: f32) -> [u8; 32] {
    let inverse = Lanes::splat(simd, search::inverse(scale));
    let mut levels = [0.0; 32];
    lanes::transform(
        simd,
        x,
        &mut levels,
        #[inline(always)]
        |x| level(inverse * x),
    );
    lanes::bytes(&levels)
}

/// Returns the level whose value is nearest to any `v`.
#[inline(always)]
fn level<S: Simd>(v: Lanes<S, 1>) -> Lanes<S, 1> {
    let [first, .., last] = IQ4.map(|value| v.constant(f32::from(value)));
    // In this order NaN, which comes from a scale without a reciprocal, becomes the largest value,
    // as in llama.cpp's binary search.
    let v = v.less(last).select(v, last);
    NEAREST_LEVEL.at(v.greater(first).select(v, first))
}

/// Searches the scale of `x ~ scale * value` for each group of 32: tries 16 scales around those
/// that map the value of largest magnitude to either end of the table, and computes the
/// least-squares scale of each (`quantize_row_iq4_nl_impl`). `weigh` computes the weights, given
/// the index of the first group.
#[inline(always)]
pub(super) fn fit<S: Simd>(
    simd: S,
    groups: &[[f32; 32]],
    weigh: impl Fn(usize, &[Lanes<S, 1>; 32]) -> [Lanes<S, 1>; 32],
    scales: &mut [f32],
) {
    for at in (0..groups.len()).step_by(Lanes::<S, 1>::COUNT) {
        let x = Lanes::transpose(simd, &groups[at..]);
        let weights = weigh(at, &x);
        fit_lanes(&x, &weights).store(&mut scales[at..]);
    }
}

#[inline(always)]
fn fit_lanes<S: Simd>(x: &[Lanes<S, 1>; 32], weights: &[Lanes<S, 1>; 32]) -> Lanes<S, 1> {
    let zero = x[0].constant(0.0);
    let mut extreme = zero;
    for &x in x {
        extreme = extreme.abs().less(x.abs()).select(x, extreme);
    }
    let end = zero.constant(f32::from(IQ4[0]));
    // The first trial maps the extreme to the far end, the others around the near end.
    let first = zero.constant(1.0) / (extreme.neg() / end);
    let (xl, ll) = sums(x, weights, first);
    let mut scale = ll.greater(zero).select(xl / ll, zero);
    let mut best = scale * xl;
    for step in -7..=7 {
        let inverse = (zero.constant(step as f32) + end) / extreme;
        let (xl, ll) = sums(x, weights, inverse);
        let won = ll.greater(zero) & (xl * xl).greater(best * ll);
        scale = won.select(xl / ll, scale);
        best = won.select(scale * xl, best);
    }
    extreme.abs().less(zero.constant(search::ZERO_GROUP)).select(zero, scale)
}

/// Sums of w*value*x and w*value*value; their quotient is the least-squares scale. No `inverse * x`
/// exceeds the end of the table by more than about 7, except in all-zero groups.
#[inline(always)]
fn sums<S: Simd>(
    x: &[Lanes<S, 1>; 32],
    weights: &[Lanes<S, 1>; 32],
    inverse: Lanes<S, 1>,
) -> (Lanes<S, 1>, Lanes<S, 1>) {
    let (mut xl, mut ll) = (inverse.constant(0.0), inverse.constant(0.0));
    for (&x, &w) in x.iter().zip(weights) {
        let value = NEAREST_VALUE.at(inverse * x);
        let weighted = w * value;
        xl = xl + weighted * x;
        ll = ll + weighted * value;
    }
    (xl, ll)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(v: f32) -> usize {
        let v = Lanes::splat(pulp::Scalar::new(), v);
        let found = level(v).as_slice()[0] as usize;
        if v.as_slice()[0].abs() < 150.0 {
            assert_eq!(NEAREST_VALUE.at(v).as_slice(), [f32::from(IQ4[found])]);
        }
        found
    }

    #[test]
    fn nearest_value_wins_and_ties_go_up() {
        for (level, &value) in IQ4.iter().enumerate() {
            let v = f32::from(value);
            assert_eq!(nearest(v), level);
            if level > 0 {
                let border = (v + f32::from(IQ4[level - 1])) / 2.0;
                assert_eq!(nearest(border), level);
                assert_eq!(nearest(border.next_down()), level - 1);
            }
        }
        for (v, level) in [(-1e30, 0), (f32::NEG_INFINITY, 0), (f32::INFINITY, 15), (f32::NAN, 15)]
        {
            assert_eq!(nearest(v), level);
        }
        assert_eq!((nearest(-0.0), nearest(-149.0), nearest(149.0)), (8, 0, 15));
    }
}
