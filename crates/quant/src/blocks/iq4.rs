//! What IQ4_NL and IQ4_XS share: 4-bit levels into a table of 16 values, close together around 0.

use pulp::Simd;

use crate::lanes::{self, Lanes, Steps};
use crate::search;

/// The value of each level (`kvalues_iq4nl`).
pub(crate) const VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The borders between levels, where the upper one wins.
const BORDERS: [f32; 15] = {
    let mut borders = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        borders[n] = (VALUES[n] as i32 + VALUES[n + 1] as i32) as f32 / 2.0;
        n += 1;
    }
    borders
};

/// The value nearest to a number.
const NEAREST_VALUE: Steps = {
    let mut below = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        below[n] = VALUES[n] as f32;
        n += 1;
    }
    Steps::new(&BORDERS, &below, VALUES[15] as f32)
};

/// The level of that value.
const NEAREST_LEVEL: Steps = {
    let mut below = [0.0; 15];
    let mut n = 0;
    while n < 15 {
        below[n] = n as f32;
        n += 1;
    }
    Steps::new(&BORDERS, &below, 15.0)
};

/// The level for each weight under a scale; 0 for its reciprocal if it is 0.
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

/// The level whose value is nearest to `v`, whatever that is.
#[inline(always)]
fn level<S: Simd>(v: Lanes<S, 1>) -> Lanes<S, 1> {
    let [first, .., last] = VALUES.map(|value| v.constant(f32::from(value)));
    // In this order NaN, which a scale without reciprocal makes of 0, becomes the largest value, as
    // in llama.cpp's binary search.
    let v = v.less(last).select(v, last);
    NEAREST_LEVEL.at(v.more(first).select(v, first))
}

/// Searches the scale of `x ~ scale * value` for each group of 32: tries 16 scales around those that
/// put the extreme at one end of the table or the other, each followed by the least-squares scale
/// (`quantize_row_iq4_nl_impl`). `weigh` makes the weights, given the number of the first group.
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
    let end = zero.constant(f32::from(VALUES[0]));
    // The first trial puts the extreme at the far end, the others around the near one.
    let first = zero.constant(1.0) / (extreme.negative() / end);
    let (xl, ll) = sums(x, weights, first);
    let mut scale = ll.more(zero).select(xl / ll, zero);
    let mut best = scale * xl;
    for step in -7..=7 {
        let inverse = (zero.constant(step as f32) + end) / extreme;
        let (xl, ll) = sums(x, weights, inverse);
        let won = ll.more(zero) & (xl * xl).more(best * ll);
        scale = won.select(xl / ll, scale);
        best = won.select(scale * xl, best);
    }
    extreme.abs().less(zero.constant(search::ZERO_GROUP)).select(zero, scale)
}

/// Sums of w*value*x and w*value*value, whose quotient is the least-squares scale. No `inverse * x`
/// is beyond the end of the table by more than 7 and some rounding, but in groups of zeros.
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
            assert_eq!(NEAREST_VALUE.at(v).as_slice(), [f32::from(VALUES[found])]);
        }
        found
    }

    #[test]
    fn nearest_value_wins_and_the_upper_of_two() {
        for (level, &value) in VALUES.iter().enumerate() {
            let v = f32::from(value);
            assert_eq!(nearest(v), level);
            if level > 0 {
                let border = (v + f32::from(VALUES[level - 1])) / 2.0;
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
