//! What IQ4_NL and IQ4_XS share: 4-bit levels into a table of 16 values, close together around 0.

use crate::search;

/// The value of each level (`kvalues_iq4nl`).
pub(crate) const VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The level whose value is nearest to v, for `2 * v` rounded down to `n - 256`. The borders between
/// levels, where the upper one wins, are means of two integers, so that much of v is enough.
const NEAREST: [u8; 512] = {
    let mut levels = [0; 512];
    let (mut n, mut level) = (0, 0);
    while n < 512 {
        if level < 15 && n as i32 - 256 >= VALUES[level] as i32 + VALUES[level + 1] as i32 {
            level += 1;
        }
        levels[n] = level as u8;
        n += 1;
    }
    levels
};

/// The values of those levels.
const NEAREST_VALUE: [f32; 512] = {
    let mut values = [0.0; 512];
    let mut n = 0;
    while n < 512 {
        values[n] = VALUES[NEAREST[n] as usize] as f32;
        n += 1;
    }
    values
};

/// The index of v in these tables.
#[inline(always)]
fn half_steps(v: f32) -> usize {
    // The comparisons in this order take NaN, which a scale without reciprocal makes of 0, for the
    // largest value, as the official binary search does.
    let v = if v < 127.0 { v } else { 127.0 };
    let v = if v > -127.0 { v } else { -127.0 };
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the mantissa.
    const ROUND: f32 = 12_582_912.0;
    let doubled = 2.0 * v;
    let rounded = (doubled + ROUND) - ROUND;
    let floor = if rounded > doubled { rounded - 1.0 } else { rounded };
    ((floor + 256.0 + ROUND).to_bits() & 511) as usize
}

/// The level for each weight under a scale; 0 for its reciprocal if it is 0.
#[inline(always)]
pub(super) fn levels(x: &[f32; 32], scale: f32) -> [u8; 32] {
    let inverse = search::inverse(scale);
    let mut levels = [0; 32];
    for (level, x) in levels.iter_mut().zip(x) {
        *level = NEAREST[half_steps(inverse * x)];
    }
    levels
}

/// Searches the scale of `x ~ scale * value`: tries 16 scales around those that put the extreme at
/// one end of the table or the other, each followed by the least-squares scale
/// (`quantize_row_iq4_nl_impl`).
#[inline(always)]
pub(super) fn fit(x: &[f32; 32], weights: &[f32; 32]) -> f32 {
    const TRIALS: usize = 16;
    let extreme = search::extreme(x);
    if extreme.abs() < search::ZERO_GROUP {
        return 0.0;
    }
    let end = f32::from(VALUES[0]);
    // The first trial puts the extreme at the far end, the others around the near one.
    let mut inverses = [1.0 / (-extreme / end); TRIALS];
    for (k, inverse) in inverses.iter_mut().enumerate().skip(1) {
        *inverse = (k as f32 - 8.0 + end) / extreme;
    }
    // All trials at once, as in `search::symmetric`.
    let (mut sum_xl, mut sum_ll) = ([0.0; TRIALS], [0.0; TRIALS]);
    for (&x, &w) in x.iter().zip(weights) {
        let values = inverses.map(|inverse| NEAREST_VALUE[half_steps(inverse * x)]);
        for ((xl, ll), value) in sum_xl.iter_mut().zip(&mut sum_ll).zip(values) {
            *xl += w * value * x;
            *ll += w * value * value;
        }
    }
    let mut scale = if sum_ll[0] > 0.0 { sum_xl[0] / sum_ll[0] } else { 0.0 };
    let mut best = scale * sum_xl[0];
    for (&xl, &ll) in sum_xl.iter().zip(&sum_ll).skip(1) {
        if ll > 0.0 && xl * xl > best * ll {
            scale = xl / ll;
            best = scale * xl;
        }
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_value_wins_and_the_upper_of_two() {
        for (level, &value) in VALUES.iter().enumerate() {
            let v = f32::from(value);
            assert_eq!(usize::from(NEAREST[half_steps(v)]), level);
            if level > 0 {
                let border = (v + f32::from(VALUES[level - 1])) / 2.0;
                assert_eq!(usize::from(NEAREST[half_steps(border)]), level);
                assert_eq!(usize::from(NEAREST[half_steps(border.next_down())]), level - 1);
            }
        }
        for (v, level) in [(-1e30, 0), (f32::NEG_INFINITY, 0), (f32::INFINITY, 15), (f32::NAN, 15)]
        {
            assert_eq!(NEAREST[half_steps(v)], level);
        }
        assert_eq!(NEAREST[half_steps(-0.0)], 8);
    }
}
