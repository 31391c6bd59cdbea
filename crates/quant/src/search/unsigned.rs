//! Search of a scale for non-negative floats, one group per lane.

use pulp::Simd;

use super::ZERO_GROUP;
use crate::lanes::{self, Lanes};

/// Runs `unsigned` of `reference.rs` with one group per lane and returns scales and levels.
#[inline(always)]
pub(crate) fn unsigned_lanes<S: Simd, const U: usize, const N: usize>(
    top: i32,
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
) -> (Lanes<S, U>, [Lanes<S, U>; N]) {
    /// No lower bound: below any result of rounding.
    const ANY: f32 = -4_194_304.0;
    let top = top as f32;
    let zero = x[0].constant(0.0);
    let mut max = zero;
    for &x in x {
        max = max.greater(x).select(max, x);
    }
    let none = max.less(zero.constant(ZERO_GROUP));
    let mut inverse = zero.constant(top) / max;
    let mut best = error(
        x,
        weights,
        zero.constant(1.0) / inverse,
        &lanes::map(
            x,
            #[inline(always)]
            |x| (inverse * x).nearest_byte(),
        ),
    );
    for step in (-4..=4).filter(|&s| s != 0) {
        let trial = zero.constant(0.1 * step as f32 + top) / max;
        let new = error(
            x,
            weights,
            zero.constant(1.0) / trial,
            &lanes::map(
                x,
                #[inline(always)]
                |x| (trial * x).nearest(ANY, top),
            ),
        );
        let won = new.less(best);
        best = won.select(new, best);
        inverse = won.select(trial, inverse);
    }
    let (mut sum_xl, mut sum_ll) = (zero, zero);
    let mut levels = *x;
    for ((level, &x), &w) in levels.iter_mut().zip(x).zip(weights) {
        let l = (inverse * x).nearest(ANY, top);
        *level = l.nearest_byte();
        sum_xl = sum_xl + w * x * l;
        sum_ll = sum_ll + w * l * l;
    }
    for _ in 0..5 {
        let mut moved = zero.less(zero);
        for ((level, &x), &w) in levels.iter_mut().zip(x).zip(weights) {
            let xl = sum_xl - w * x * *level;
            let ll = sum_ll - w * *level * *level;
            let new = (x * ll / xl).nearest(ANY, top);
            let new_xl = xl + w * x * new;
            let new_ll = ll + w * new * new;
            let better = (new_xl * new_xl * sum_ll).greater(sum_xl * sum_xl * new_ll);
            let won = xl.greater(zero) & ll.greater(zero) & !new.equal(*level) & better;
            *level = won.select(new.nearest_byte(), *level);
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
            |l| none.select(zero, l),
        ),
    )
}

/// Weighted error of a trial.
#[inline(always)]
fn error<S: Simd, const U: usize, const N: usize>(
    x: &[Lanes<S, U>; N],
    weights: &[Lanes<S, U>; N],
    scale: Lanes<S, U>,
    levels: &[Lanes<S, U>; N],
) -> Lanes<S, U> {
    let mut total = x[0].constant(0.0);
    for ((&x, &l), &w) in x.iter().zip(levels).zip(weights) {
        let diff = x - scale * l;
        total = total + w * diff * diff;
    }
    total
}
