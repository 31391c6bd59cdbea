//! Search of a symmetric scale, one group of floats per lane.

use pulp::Simd;

use super::ZERO_GROUP;
use crate::lanes::{self, Lanes};

/// Value of largest magnitude with its sign; the first of equals, 0 if all are 0.
#[inline(always)]
fn extreme<S: Simd, const U: usize, const N: usize>(x: &[Lanes<S, U>; N]) -> Lanes<S, U> {
    let (mut best, mut magnitude) = (x[0].constant(0.0), x[0].constant(0.0));
    for &x in x {
        let larger = magnitude.less(x.abs());
        best = larger.select(x, best);
        magnitude = larger.select(x.abs(), magnitude);
    }
    best
}

/// Searches `scale` and levels `0..2 * half` for `x ~ scale * (level - half)`: tries 19 scales
/// around the one that maps the value of largest magnitude to level 0, and computes the
/// least-squares scale of each (`make_qx_quants` with `rmse_type` 1).
///
/// Returns the scale and the inverse scale of the best trial, from which its levels can be
/// recomputed. For an all-zero group these are 0 and NaN.
#[inline(always)]
pub(crate) fn symmetric<S: Simd, const U: usize, const N: usize>(
    half: i32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
) -> (Lanes<S, U>, Lanes<S, U>) {
    let half = half as f32;
    let zero = x[0].constant(0.0);
    let extreme = extreme(x);
    let none = extreme.abs().less(zero.constant(ZERO_GROUP));
    let mut products = *weights;
    for (product, &x) in products.iter_mut().zip(x) {
        *product = *product * x;
    }
    // With finite extremes the levels of all trials stay close to -half-1..=half+1, except in
    // all-zero groups, where no trial succeeds.
    let in_range = extreme.abs().less(zero.constant(f32::INFINITY));
    let (scale, chosen) = match (!in_range).any() {
        false => try_all::<_, _, _, true>(half, x, weights, &products, extreme),
        true => try_all::<_, _, _, false>(half, x, weights, &products, extreme),
    };
    (none.select(zero, scale), none.select(zero.constant(f32::NAN), chosen))
}

/// Returns the scale and the inverse scale of the best trial. `IN_RANGE`: all numbers are finite.
#[inline(always)]
fn try_all<S: Simd, const U: usize, const N: usize, const IN_RANGE: bool>(
    half: f32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    products: &[Lanes<S, U>; N],
    extreme: Lanes<S, U>,
) -> (Lanes<S, U>, Lanes<S, U>) {
    /// Number of trials, and the index of the initial trial, which maps the value of largest
    /// magnitude to level 0.
    const TRIALS: i32 = 19;
    const FIRST: i32 = 9;
    let zero = extreme.constant(0.0);
    let mut chosen = zero.constant(-half) / extreme;
    let (xl, ll) = sums::<_, _, _, IN_RANGE>(half, x, weights, products, chosen);
    let mut scale = ll.equal(zero).select(zero, xl / ll);
    let mut best = scale * xl;
    for k in (0..TRIALS).filter(|&k| k != FIRST) {
        let inverse = zero.constant(-(half + 0.1 * (k as f32 - FIRST as f32))) / extreme;
        let (xl, ll) = sums::<_, _, _, IN_RANGE>(half, x, weights, products, inverse);
        let won = ll.greater(zero) & (xl * xl).greater(best * ll);
        let quotient = xl / ll;
        chosen = won.select(inverse, chosen);
        scale = won.select(quotient, scale);
        best = won.select(quotient * xl, best);
    }
    (scale, chosen)
}

/// Sums of w*x*l and w*l*l for the levels of a trial, given w*x; their quotient is the
/// least-squares scale.
#[inline(always)]
fn sums<S: Simd, const U: usize, const N: usize, const IN_RANGE: bool>(
    half: f32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    products: &[Lanes<S, U>; N],
    inverse: Lanes<S, U>,
) -> (Lanes<S, U>, Lanes<S, U>) {
    let (mut sum_xl, mut sum_ll) = (x[0].constant(0.0), x[0].constant(0.0));
    for ((&x, &w), &product) in x.iter().zip(weights).zip(products) {
        let v = inverse * x;
        let (low, high) = (-half, half - 1.0);
        let l = if IN_RANGE { v.nearest_in_range(low, high) } else { v.nearest(low, high) };
        sum_xl = sum_xl + product * l;
        sum_ll = sum_ll + w * l * l;
    }
    (sum_xl, sum_ll)
}

/// Searches like [`symmetric`] with weights x*x: starts from one scale, then improves single levels
/// by coordinate descent, at most five passes (`make_q3_quants`).
///
/// Returns the scale and the levels minus `half`; those of an all-zero group are `-half`.
#[inline(always)]
pub(crate) fn symmetric_descent<S: Simd, const U: usize, const N: usize>(
    half: i32,
    x: &[Lanes<S, U>; N],
) -> (Lanes<S, U>, [Lanes<S, U>; N]) {
    let half = half as f32;
    let zero = x[0].constant(0.0);
    let extreme = extreme(x);
    let none = extreme.abs().less(zero.constant(ZERO_GROUP));
    let inverse = zero.constant(-half) / extreme;
    let mut levels = lanes::map(
        x,
        #[inline(always)]
        |x| (inverse * x).nearest(-half, half - 1.0),
    );
    let (mut sum_xl, mut sum_ll) = (zero, zero);
    for (&x, &l) in x.iter().zip(&levels) {
        let w = x * x;
        sum_xl = sum_xl + w * x * l;
        sum_ll = sum_ll + w * l * l;
    }
    for _ in 0..5 {
        let mut moved = zero.less(zero);
        for (&x, level) in x.iter().zip(&mut levels) {
            let w = x * x;
            let xl = sum_xl - w * x * *level;
            let ll = sum_ll - w * *level * *level;
            let new = (x * ll / xl).nearest(-half, half - 1.0);
            let new_xl = xl + w * x * new;
            let new_ll = ll + w * new * new;
            let better = (new_xl * new_xl * sum_ll).greater(sum_xl * sum_xl * new_ll);
            let won = xl.greater(zero) & !new.equal(*level) & new_ll.greater(zero) & better;
            *level = won.select(new, *level);
            sum_xl = won.select(new_xl, sum_xl);
            sum_ll = won.select(new_ll, sum_ll);
            moved = moved | won;
        }
        // A lane without a change in one pass has none in the next.
        if !moved.any() {
            break;
        }
    }
    let scale = sum_ll.greater(zero).select(sum_xl / sum_ll, zero);
    (
        none.select(zero, scale),
        lanes::map(
            &levels,
            #[inline(always)]
            |l| none.select(zero.constant(-half), l),
        ),
    )
}
