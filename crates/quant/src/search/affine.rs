//! Search of scale and minimum, one group of floats per lane.

use pulp::Simd;

use crate::lanes::{self, Lanes};

/// Trial scales of [`affine`]: trial i maps the maximum to level `top + first + i * step`, for i in
/// `0..=count`.
pub(crate) struct Trials {
    /// Offset of the first trial.
    pub first: f32,
    /// Step between trials.
    pub step: f32,
    /// Number of trials minus one.
    pub count: i32,
    /// Whether to minimize absolute errors instead of squared errors.
    pub absolute: bool,
}

/// Trials of all encoders with importance weights.
pub(crate) const WEIGHTED: Trials = Trials { first: -0.9, step: 0.05, count: 36, absolute: false };

/// Result of [`affine`], per lane.
pub(crate) struct Affine<S: Simd, const U: usize> {
    /// Scale of `x ~ scale * level - m`.
    pub scale: Lanes<S, U>,
    /// Negated minimum, `m >= 0`.
    pub m: Lanes<S, U>,
    /// Inverse scale of the best trial: its levels are `inverse * (x - min)`, rounded.
    pub inverse: Lanes<S, U>,
    /// Minimum of the best trial.
    pub min: Lanes<S, U>,
}

/// Searches `(scale, m)` and levels `0..=top` for `x ~ scale * level - m` with `m >= 0`: each trial
/// computes the least-squares scale and minimum (`make_qkx2_quants`, `make_qkx3_quants`).
#[inline(always)]
pub(crate) fn affine<S: Simd, const U: usize, const N: usize>(
    top: i32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    trials: &Trials,
) -> Affine<S, U> {
    let top = top as f32;
    let zero = x[0].constant(0.0);

    let (mut min, mut max) = (x[0], x[0]);
    for &x in x {
        min = x.less(min).select(x, min);
        max = x.greater(max).select(x, max);
    }
    min = min.greater(zero).select(zero, min);
    // A group of equal values has scale 0 and levels 0, whatever the trials yield.
    let flat = max.equal(min);
    let lowest = min;

    let (mut sum_w, mut sum_x) = (weights[0], weights[0] * x[0]);
    for (&x, &w) in x.iter().zip(weights).skip(1) {
        sum_w = sum_w + w;
        sum_x = sum_x + w * x;
    }
    let first = zero.constant(top) / (max - min);
    let mut levels = lanes::map(
        x,
        #[inline(always)]
        |x| (first * (x - min)).nearest(0.0, top),
    );
    let mut scale = zero.constant(1.0) / first;
    let mut best = error(trials, x, weights, scale, min, &levels);
    let (mut best_inverse, mut best_min) = (first, min);
    for i in 0..=trials.count {
        // `min` is the best so far, not the minimum of the group: each improvement shifts the later
        // trials.
        let inverse = zero.constant(trials.first + trials.step * i as f32 + top) / (max - min);
        // Levels grow with x, so it suffices to check the smallest and the largest. Most trials
        // need neither the upper clamp nor the NaN-safe rounding.
        let (low, high) = (inverse * (lowest - min), inverse * (max - min));
        let (above, below) = (zero.constant(-4e6), zero.constant(top + 0.5));
        let in_range =
            low.greater(above) & high.greater(above) & low.less(below) & high.less(below);
        let [sum_l, sum_ll, sum_xl] = match (!in_range).any() {
            false => sums::<_, _, _, true>(top, x, weights, inverse, min, &mut levels),
            true => sums::<_, _, _, false>(top, x, weights, inverse, min, &mut levels),
        };
        let det = sum_w * sum_ll - sum_l * sum_l;
        let mut new_scale = (sum_w * sum_xl - sum_x * sum_l) / det;
        let mut new_min = (sum_ll * sum_x - sum_l * sum_xl) / det;
        let above = new_min.greater(zero);
        if above.any() {
            new_scale = above.select(sum_xl / sum_ll, new_scale);
            new_min = above.select(zero, new_min);
        }
        let new_error = error(trials, x, weights, new_scale, new_min, &levels);
        let won = det.greater(zero) & new_error.less(best);
        best_inverse = won.select(inverse, best_inverse);
        best_min = won.select(min, best_min);
        best = won.select(new_error, best);
        scale = won.select(new_scale, scale);
        min = won.select(new_min, min);
    }
    Affine {
        scale: flat.select(zero, scale),
        m: flat.select(lowest, min).neg(),
        inverse: flat.select(zero, best_inverse),
        min: flat.select(lowest, best_min),
    }
}

/// Computes the levels of a trial and the sums of w*l, w*l*l and w*l*x. `IN_RANGE`: no level can
/// exceed `top`.
#[inline(always)]
fn sums<S: Simd, const U: usize, const N: usize, const IN_RANGE: bool>(
    top: f32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    inverse: Lanes<S, U>,
    min: Lanes<S, U>,
    levels: &mut [Lanes<S, U>; N],
) -> [Lanes<S, U>; 3] {
    let zero = x[0].constant(0.0);
    let (mut sum_l, mut sum_ll, mut sum_xl) = (zero, zero, zero);
    for ((level, &x), &w) in levels.iter_mut().zip(x).zip(weights) {
        let v = inverse * (x - min);
        let l = if IN_RANGE { v.nearest_from(0.0) } else { v.nearest(0.0, top) };
        *level = l;
        let wl = w * l;
        sum_l = sum_l + wl;
        sum_ll = sum_ll + wl * l;
        sum_xl = sum_xl + wl * x;
    }
    [sum_l, sum_ll, sum_xl]
}

/// Weighted error of a trial.
#[inline(always)]
fn error<S: Simd, const U: usize, const N: usize>(
    trials: &Trials,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    scale: Lanes<S, U>,
    min: Lanes<S, U>,
    levels: &[Lanes<S, U>; N],
) -> Lanes<S, U> {
    match trials.absolute {
        true => weighted_error::<_, _, _, true>(x, weights, scale, min, levels),
        false => weighted_error::<_, _, _, false>(x, weights, scale, min, levels),
    }
}

/// Weighted error of a trial; for `ABSOLUTE` see [`Trials::absolute`].
#[inline(always)]
fn weighted_error<S: Simd, const U: usize, const N: usize, const ABSOLUTE: bool>(
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    scale: Lanes<S, U>,
    min: Lanes<S, U>,
    levels: &[Lanes<S, U>; N],
) -> Lanes<S, U> {
    let mut total = x[0].constant(0.0);
    for ((&l, &x), &w) in levels.iter().zip(x).zip(weights) {
        let diff = scale * l + min - x;
        total = total + w * if ABSOLUTE { diff.abs() } else { diff * diff };
    }
    total
}
