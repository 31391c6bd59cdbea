//! Several rows of a matrix at a time: a number of each, side by side.
//!
//! Every operation does the same with each row, in an order that depends on nothing but the shape, so that
//! results are the same with any number of threads and on every machine.

use std::ops::Range;

/// Rows at a time.
pub(crate) const ROWS: usize = 16;

/// A number of each row.
pub(crate) type Lanes = [f32; ROWS];

/// `out[j - js.start] = sum of a[j][k] x[k - ks.start]` for `k` in `ks`, of a matrix with rows of `n`.
#[inline(always)]
pub(crate) fn product(
    (a, n): (&[f32], usize),
    js: Range<usize>,
    ks: Range<usize>,
    x: &[Lanes],
    out: &mut [Lanes],
) {
    const AT_ONCE: usize = 4;
    let row = |j: usize| &a[j * n..][ks.clone()];
    let mut j = js.start;
    let (fours, rest) = out.as_chunks_mut::<AT_ONCE>();
    for out in fours {
        let rows: [&[f32]; AT_ONCE] = std::array::from_fn(
            #[inline(always)]
            |i| row(j + i),
        );
        let mut sums = [[0.0; ROWS]; AT_ONCE];
        for (k, x) in x.iter().enumerate().take(ks.len()) {
            for (sums, row) in sums.iter_mut().zip(rows) {
                add_scaled(sums, row[k], x);
            }
        }
        *out = sums;
        j += AT_ONCE;
    }
    for out in rest {
        let mut sums = [0.0; ROWS];
        for (a, x) in row(j).iter().zip(x) {
            add_scaled(&mut sums, *a, x);
        }
        *out = sums;
        j += 1;
    }
}

/// Columns of a triangle that are solved one by one, before all others hear of them.
const STEP: usize = 8;

/// Changes `b` to the `u` with `u R = b`, `R` being lower triangular with ones on its diagonal.
#[inline(always)]
pub(crate) fn solve_from_the_end(r: &[f32], b: &mut [Lanes]) {
    let n = b.len();
    for start in (0..n).step_by(STEP).rev() {
        let end = n.min(start + STEP);
        for k in (start + 1..end).rev() {
            let minus = b[k].map(|x| -x);
            for (b, r) in b[start..k].iter_mut().zip(&r[k * n + start..]) {
                add_scaled(b, *r, &minus);
            }
        }
        let (before, solved) = b[..end].split_at_mut(start);
        let mut minus = [[0.0; ROWS]; STEP];
        minus.iter_mut().zip(solved).for_each(|(minus, u)| *minus = u.map(|x| -x));
        // Of the last rows those that are not there count as the last one, times 0.
        let rows: [&[f32]; STEP] = std::array::from_fn(
            #[inline(always)]
            |k| &r[(start + k).min(n - 1) * n..][..start],
        );
        for (j, b) in before.iter_mut().enumerate() {
            let mut sum = *b;
            for (row, minus) in rows.iter().zip(&minus) {
                add_scaled(&mut sum, row[j], minus);
            }
            *b = sum;
        }
    }
}

/// Changes `b` to the `x` with `x RT = b`.
#[inline(always)]
pub(crate) fn solve_from_the_start(r: &[f32], b: &mut [Lanes]) {
    let n = b.len();
    for start in (0..n).step_by(STEP) {
        let end = n.min(start + STEP);
        let mut sums = [[0.0; ROWS]; STEP];
        product((r, n), start..end, 0..start, &b[..start], &mut sums[..end - start]);
        for k in start..end {
            let mut sum = sums[k - start];
            for (x, r) in b[start..k].iter().zip(&r[k * n + start..]) {
                add_scaled(&mut sum, *r, x);
            }
            b[k] = zip(&b[k], &sum, |b, sum| b - sum);
        }
    }
}

/// `sums += a x`.
#[inline(always)]
pub(crate) fn add_scaled(sums: &mut Lanes, a: f32, x: &Lanes) {
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum = a.mul_add(*x, *sum);
    }
}

/// `sums += x y`.
#[inline(always)]
pub(crate) fn add_product(sums: &mut Lanes, x: &Lanes, y: &Lanes) {
    for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
        *sum = x.mul_add(*y, *sum);
    }
}

/// `f` of each pair.
#[inline(always)]
pub(crate) fn zip(x: &Lanes, y: &Lanes, f: impl Fn(f32, f32) -> f32) -> Lanes {
    let mut out = [0.0; ROWS];
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = f(*x, *y);
    }
    out
}
