//! Scalar reference implementation of the searches for one group, and tests of the vector searches
//! against it.

use pulp::{Simd, WithSimd};

use super::{Fits, Trials, WEIGHTED, ZERO_GROUP, extreme, nearest, range, sum_squares};
use crate::dispatch::InstructionSet;
use crate::lanes::{self, Lanes};

/// Searches `scale` and levels `0..2 * half` for `x ~ scale * (level - half)`: tries 19 scales
/// around the one that maps the value of largest magnitude to level 0, and computes the
/// least-squares scale of each (`make_qx_quants` with `rmse_type` 1).
///
/// The levels of an all-zero group are 0, not `half`: its scale is 0.
fn symmetric<const N: usize>(
    half: i32,
    x: &[f32; N],
    weights: &[f32; N],
    levels: &mut [u8; N],
) -> f32 {
    /// Number of trials, and the index of the initial trial, which maps the value of largest
    /// magnitude to level 0.
    const TRIALS: usize = 19;
    const FIRST: usize = 9;
    let extreme = extreme(x);
    if extreme.abs() < ZERO_GROUP {
        levels.fill(0);
        return 0.0;
    }
    let level = |inverse: f32, x: f32| nearest(inverse * x).clamp(-half, half - 1);
    // Trials are independent: evaluating all at once keeps the order of every sum, and the compiler
    // vectorizes them.
    let inverses: [f32; TRIALS] =
        std::array::from_fn(|k| -(half as f32 + 0.1 * (k as f32 - FIRST as f32)) / extreme);
    // Sums of w*x*l and w*l*l; their quotient is the least-squares scale of a trial.
    let (mut sum_xl, mut sum_ll) = ([0.0; TRIALS], [0.0; TRIALS]);
    for (&x, &w) in x.iter().zip(weights) {
        for ((xl, ll), &inverse) in sum_xl.iter_mut().zip(&mut sum_ll).zip(&inverses) {
            let l = level(inverse, x) as f32;
            *xl += w * x * l;
            *ll += w * l * l;
        }
    }
    let (mut chosen, xl, ll) = (FIRST, sum_xl[FIRST], sum_ll[FIRST]);
    let mut scale = if ll != 0.0 { xl / ll } else { 0.0 };
    let mut best = scale * xl;
    for k in (0..TRIALS).filter(|&k| k != FIRST) {
        let (xl, ll) = (sum_xl[k], sum_ll[k]);
        if ll > 0.0 && xl * xl > best * ll {
            chosen = k;
            scale = xl / ll;
            best = scale * xl;
        }
    }
    *levels = x.map(|x| (level(inverses[chosen], x) + half) as u8);
    scale
}

/// Searches like [`symmetric`] with weights x*x: starts from one scale, then improves single levels
/// by coordinate descent, at most five passes (`make_q3_quants`).
fn symmetric_descent<const N: usize>(half: i32, x: &[f32; N], levels: &mut [u8; N]) -> f32 {
    let extreme = extreme(x);
    if extreme.abs() < ZERO_GROUP {
        levels.fill(0);
        return 0.0;
    }
    let inverse = -half as f32 / extreme;
    let mut signed = x.map(|x| nearest(inverse * x).clamp(-half, half - 1));
    let (mut sum_xl, mut sum_ll) = (0.0, 0.0);
    for (&x, &l) in x.iter().zip(&signed) {
        let (w, l) = (x * x, l as f32);
        sum_xl += w * x * l;
        sum_ll += w * l * l;
    }
    for _ in 0..5 {
        let mut moved = false;
        for (&x, level) in x.iter().zip(&mut signed) {
            let (w, l) = (x * x, *level as f32);
            let mut xl = sum_xl - w * x * l;
            if xl > 0.0 {
                let mut ll = sum_ll - w * l * l;
                let new = nearest(x * ll / xl).clamp(-half, half - 1);
                if new != *level {
                    let l = new as f32;
                    xl += w * x * l;
                    ll += w * l * l;
                    if ll > 0.0 && xl * xl * sum_ll > sum_xl * sum_xl * ll {
                        (*level, sum_xl, sum_ll) = (new, xl, ll);
                        moved = true;
                    }
                }
            }
        }
        if !moved {
            break;
        }
    }
    *levels = signed.map(|l| (l + half) as u8);
    if sum_ll > 0.0 { sum_xl / sum_ll } else { 0.0 }
}

/// Searches `(scale, m)` and levels `0..=top` for `x ~ scale * level - m` with `m >= 0`: each trial
/// computes the least-squares scale and minimum (`make_qkx2_quants`, `make_qkx3_quants`).
fn affine<const N: usize>(
    top: i32,
    x: &[f32; N],
    weights: &[f32; N],
    trials: &Trials,
    levels: &mut [u8; N],
) -> (f32, f32) {
    let (low, max) = range(x);
    let mut min = if low > 0.0 { 0.0 } else { low };
    if max == min {
        levels.fill(0);
        return (0.0, -min);
    }
    let (mut sum_w, mut sum_x) = (weights[0], weights[0] * x[0]);
    for (&x, &w) in x.iter().zip(weights).skip(1) {
        sum_w += w;
        sum_x += w * x;
    }
    let error = |scale: f32, min: f32, levels: &[u8; N]| {
        let mut total = 0.0;
        for ((&l, &x), &w) in levels.iter().zip(x).zip(weights) {
            let diff = scale * f32::from(l) + min - x;
            total += w * if trials.absolute { diff.abs() } else { diff * diff };
        }
        total
    };
    let inverse = top as f32 / (max - min);
    for (level, &x) in levels.iter_mut().zip(x) {
        *level = nearest(inverse * (x - min)).clamp(0, top) as u8;
    }
    let mut scale = 1.0 / inverse;
    let mut best = error(scale, min, levels);
    let mut trial = [0; N];
    for i in 0..=trials.count {
        // `min` is the best so far, not the minimum of the group: each improvement shifts the later
        // trials.
        let inverse = (trials.first + trials.step * i as f32 + top as f32) / (max - min);
        let (mut sum_l, mut sum_ll, mut sum_xl) = (0.0, 0.0, 0.0);
        for ((level, &x), &w) in trial.iter_mut().zip(x).zip(weights) {
            let l = nearest(inverse * (x - min)).clamp(0, top);
            *level = l as u8;
            let l = l as f32;
            sum_l += w * l;
            sum_ll += w * l * l;
            sum_xl += w * l * x;
        }
        let det = sum_w * sum_ll - sum_l * sum_l;
        if det > 0.0 {
            let mut new_scale = (sum_w * sum_xl - sum_x * sum_l) / det;
            let mut new_min = (sum_ll * sum_x - sum_l * sum_xl) / det;
            if new_min > 0.0 {
                new_min = 0.0;
                new_scale = sum_xl / sum_ll;
            }
            let new_error = error(new_scale, new_min, &trial);
            if new_error < best {
                *levels = trial;
                (best, scale, min) = (new_error, new_scale, new_min);
            }
        }
    }
    (scale, -min)
}

/// Searches `scale` and levels `0..=top` for non-negative `x ~ scale * level`: nine trial scales,
/// then coordinate descent over single levels (`make_qp_quants`). Used for the scales and minimums
/// of groups.
///
/// A negative x (a scale that rounding drove below zero) wraps to a level above `top`, as in C.
fn unsigned<const N: usize>(
    top: i32,
    x: &[f32; N],
    weights: &[f32; N],
    levels: &mut [u8; N],
) -> f32 {
    // Written out because NaN must replace the maximum, as it does in the C macro.
    let max = x.iter().fold(0.0, |max, &v| if max > v { max } else { v });
    if max < ZERO_GROUP {
        levels.fill(0);
        return 0.0;
    }
    let error = |scale: f32, l: [i32; N]| {
        let mut total = 0.0;
        for ((&x, &l), &w) in x.iter().zip(&l).zip(weights) {
            let diff = x - scale * l as f32;
            total += w * diff * diff;
        }
        total
    };
    let mut inverse = top as f32 / max;
    let mut best = error(1.0 / inverse, x.map(|x| i32::from(nearest(inverse * x) as u8)));
    for step in (-4..=4).filter(|&s| s != 0) {
        let trial = (0.1 * step as f32 + top as f32) / max;
        let new = error(1.0 / trial, x.map(|x| nearest(trial * x).min(top)));
        if new < best {
            (best, inverse) = (new, trial);
        }
    }
    let (mut sum_xl, mut sum_ll) = (0.0, 0.0);
    for ((level, &x), &w) in levels.iter_mut().zip(x).zip(weights) {
        let l = nearest(inverse * x).min(top);
        *level = l as u8;
        let l = l as f32;
        sum_xl += w * x * l;
        sum_ll += w * l * l;
    }
    for _ in 0..5 {
        let mut moved = false;
        for ((level, &x), &w) in levels.iter_mut().zip(x).zip(weights) {
            let l = f32::from(*level);
            let mut xl = sum_xl - w * x * l;
            let mut ll = sum_ll - w * l * l;
            if xl > 0.0 && ll > 0.0 {
                let new = nearest(x * ll / xl).min(top);
                if new != i32::from(*level) {
                    let l = new as f32;
                    xl += w * x * l;
                    ll += w * l * l;
                    if xl * xl * sum_ll > sum_xl * sum_xl * ll {
                        (*level, sum_xl, sum_ll) = (new as u8, xl, ll);
                        moved = true;
                    }
                }
            }
        }
        if !moved {
            break;
        }
    }
    if sum_ll > 0.0 { sum_xl / sum_ll } else { 0.0 }
}

/// Groups of all kinds, with weights.
fn groups() -> (Vec<[f32; 32]>, Vec<[f32; 32]>) {
    let mut state = 5u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let mut x = Vec::new();
    for k in 0..77 {
        let (offset, scale) = (random() * (k % 3) as f32, 10f32.powi(k % 11 - 5));
        let mut group: [f32; 32] = std::array::from_fn(|_| (random() * random() + offset) * scale);
        match k {
            10 => group = [0.0; 32],
            20 => group = [-0.0; 32],
            30 => group = [scale; 32],
            40 => group = [-scale; 32],
            50 => group = group.map(|x| x * 1e-40),
            60 => group[7] = f32::MAX,
            61 => group = group.map(|x| f32::MAX * x.signum()),
            62 => group = group.map(|x| x.abs().min(0.9) * 1e-15),
            63 => group = group.map(|x| x.round()),
            // Weights are finite, but the scale of a group can overflow.
            64 => group[3] = f32::INFINITY,
            _ => {}
        }
        x.push(group);
    }
    let weights = x.iter().enumerate().map(|(k, x)| match k % 9 {
        0 => x.map(|x| x * x),
        1 => [0.0; 32],
        2 => x.map(|_| 1e20 * random()),
        _ => x.map(|_| random() * random() + 1.01),
    });
    let weights = weights.collect();
    (x, weights)
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

struct Compare(InstructionSet);

impl WithSimd for Compare {
    type Output = ();

    fn with_simd<S: Simd>(self, simd: S) {
        let (x, weights) = groups();
        let few = Trials { first: -0.5, step: 0.1, count: 15, absolute: true };
        for (top, trials) in [(15, &WEIGHTED), (3, &few)] {
            let mut fits = Fits::new();
            fits.affine(simd, (top, trials), &x, |at, _| Lanes::transpose(simd, &weights[at..]));
            for (g, x) in x.iter().enumerate() {
                let mut levels = [0; 32];
                let (scale, m) = affine(top, x, &weights[g], trials, &mut levels);
                let found = (fits.scale[g], fits.m[g]);
                assert!(same(scale, found.0) && same(m, found.1), "{} affine {g}", self.0);
                let mut found = [0.0; 32];
                fits.affine_levels(simd, (top, g), x, &mut found);
                assert_eq!(lanes::bytes(&found), levels, "{} affine {g}", self.0);
            }
        }
        let mut fits = Fits::new();
        fits.symmetric(simd, 8, &x, |at, _| Lanes::transpose(simd, &weights[at..]));
        for (g, x) in x.iter().enumerate() {
            let mut levels = [0; 32];
            let scale = symmetric(8, x, &weights[g], &mut levels);
            assert!(same(scale, fits.scale[g]), "{} symmetric {g}", self.0);
            let mut found = [0.0; 32];
            fits.symmetric_levels(simd, (8, g), x, &mut found);
            assert_eq!(lanes::bytes(&found), levels, "{} symmetric {g}", self.0);
        }
        let found = fits.symmetric_descent(simd, 4, &x);
        for (g, x) in x.iter().enumerate() {
            let mut levels = [0; 32];
            let scale = symmetric_descent(4, x, &mut levels);
            assert!(same(scale, fits.scale[g]), "{} moves {g}", self.0);
            assert_eq!(lanes::bytes(&found[g]), levels, "{} moves {g}", self.0);
        }
        for x in [x.clone(), x.iter().map(|x| x.map(f32::abs)).collect()] {
            let (scales, levels) = super::unsigned_groups::<_, 32, 80>(simd, 63, &x, &weights);
            for (g, x) in x.iter().enumerate() {
                let mut expected = [0; 32];
                let scale = unsigned(63, x, &weights[g], &mut expected);
                assert!(same(scale, scales[g]), "{} unsigned {g}", self.0);
                assert_eq!(levels[g], expected, "{} unsigned {g}", self.0);
            }
        }
        let squares = super::sums_of_squares::<32, 80>(&x);
        assert!(x.iter().zip(squares).all(|(x, sum)| same(sum_squares(x), sum)));
    }
}

#[test]
fn lanes_match_the_reference() {
    for set in InstructionSet::available() {
        set.run(Compare(set));
    }
}
