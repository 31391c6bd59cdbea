//! Search of the scale of a group of magnitudes without the codebook constraint; the encoder of
//! IQ2_XXS starts from it.

use crate::search;

/// Searches the scale of `x ~ scale * level`, levels in `0..=top`: nine trial scales around the one
/// that maps the largest x, `max`, to the last level, then coordinate descent over single levels
/// (`make_qp_quants`).
///
/// A negative x (its sign was flipped) wraps to a level above `top`, as in C.
#[inline(always)]
pub(super) fn unconstrained_scale<const N: usize>(
    top: i32,
    max: f32,
    x: &[f32; N],
    weights: &[f32; N],
) -> f32 {
    let inverse = best_inverse(top, max, x, weights);
    let (mut products, mut levels) = ([0.0; N], [0.0; N]);
    let (mut sum_xl, mut sum_ll) = (0.0, 0.0);
    for i in 0..N {
        let (x, w) = (x[i], weights[i]);
        let l = search::nearest(inverse * x).min(top);
        products[i] = w * x;
        levels[i] = f32::from(l as u8);
        sum_xl += w * x * l as f32;
        sum_ll += w * l as f32 * l as f32;
    }
    // At most five passes. A change is evaluated with the sums after all earlier changes, so until
    // the first change all levels can be evaluated together.
    for _ in 0..5 {
        let mut start = 0;
        loop {
            let mut first = N as u32;
            for i in 0..N {
                let (x, w, wx, l) = (x[i], weights[i], products[i], levels[i]);
                let (xl, ll) = (sum_xl - wx * l, sum_ll - w * l * l);
                let new = search::nearest(x * ll / xl).min(top) as f32;
                let (new_xl, new_ll) = (xl + wx * new, ll + w * new * new);
                let better = new_xl * new_xl * sum_ll > sum_xl * sum_xl * new_ll;
                let moves = (xl > 0.0) & (ll > 0.0) & (new != l) & better;
                first = first.min(if moves & (i >= start) { i as u32 } else { N as u32 });
            }
            let i = first as usize;
            if i >= N {
                break;
            }
            let (x, w, wx, l) = (x[i], weights[i], products[i], levels[i]);
            let (xl, ll) = (sum_xl - wx * l, sum_ll - w * l * l);
            let new = search::nearest(x * ll / xl).min(top);
            levels[i] = f32::from(new as u8);
            sum_xl = xl + wx * new as f32;
            sum_ll = ll + w * new as f32 * new as f32;
            start = i + 1;
        }
        if start == 0 {
            break;
        }
    }
    if sum_ll > 0.0 { sum_xl / sum_ll } else { 0.0 }
}

/// Returns the inverse of the scale with the smallest error; the first of equals in trial order.
#[inline(always)]
fn best_inverse<const N: usize>(top: i32, max: f32, x: &[f32; N], weights: &[f32; N]) -> f32 {
    /// Offsets of the other trials from the first.
    const STEPS: [f32; 8] = [-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0];
    let mut inverse = top as f32 / max;
    let (mut trials, mut scales) = ([0.0; 8], [0.0; 8]);
    for ((trial, scale), step) in trials.iter_mut().zip(&mut scales).zip(STEPS) {
        *trial = (0.1 * step + top as f32) / max;
        *scale = 1.0 / *trial;
    }
    let first_scale = 1.0 / inverse;
    let (mut best, mut errors) = (0.0, [0.0; 8]);
    for (&x, &w) in x.iter().zip(weights) {
        // A negative level wraps at this point already.
        let diff = x - first_scale * f32::from(search::nearest(inverse * x) as u8);
        best += w * diff * diff;
        for ((error, trial), scale) in errors.iter_mut().zip(trials).zip(scales) {
            let diff = x - scale * search::nearest(trial * x).min(top) as f32;
            *error += w * diff * diff;
        }
    }
    for (error, trial) in errors.into_iter().zip(trials) {
        if error < best {
            (best, inverse) = (error, trial);
        }
    }
    inverse
}
