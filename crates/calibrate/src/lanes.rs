//! Linear algebra over several rows of a matrix at a time, one lane per row.
//!
//! Every operation does the same for each row, in an order that depends only on the shape, so
//! results are identical with any number of threads and on every machine.

use std::ops::Range;

/// Number of rows per tile.
pub(crate) const ROWS: usize = 16;

/// One number per row.
pub(crate) type Lanes = [f32; ROWS];

/// `out[j - js.start] = sum of a[j][k] x[k - ks.start]` for `k` in `ks`, where `a` has rows of `n`.
#[inline(always)]
pub(crate) fn matmul(
    (a, n): (&[f32], usize),
    js: Range<usize>,
    ks: Range<usize>,
    x: &[Lanes],
    out: &mut [Lanes],
) {
    const BATCH: usize = 4;
    let row = |j: usize| &a[j * n..][ks.clone()];
    let mut j = js.start;
    let (fours, rest) = out.as_chunks_mut::<BATCH>();
    for out in fours {
        let rows: [&[f32]; BATCH] = std::array::from_fn(
            #[inline(always)]
            |i| row(j + i),
        );
        let mut sums = [[0.0; ROWS]; BATCH];
        for (k, x) in x.iter().enumerate().take(ks.len()) {
            for (sums, row) in sums.iter_mut().zip(rows) {
                add_scaled(sums, row[k], x);
            }
        }
        *out = sums;
        j += BATCH;
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

/// Number of columns solved one by one before all others are updated.
const STEP: usize = 8;

/// Solves `u R = b` in place, with `R` unit lower triangular.
#[inline(always)]
pub(crate) fn solve_unit_lower(r: &[f32], b: &mut [Lanes]) {
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
        // Padding of the last rows repeats the last row, times 0.
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

/// Solves `x Rᵀ = b` in place, with `R` unit lower triangular.
#[inline(always)]
pub(crate) fn solve_unit_lower_transposed(r: &[f32], b: &mut [Lanes]) {
    let n = b.len();
    for start in (0..n).step_by(STEP) {
        let end = n.min(start + STEP);
        let mut sums = [[0.0; ROWS]; STEP];
        matmul((r, n), start..end, 0..start, &b[..start], &mut sums[..end - start]);
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

/// Applies `f` lane by lane.
#[inline(always)]
pub(crate) fn zip(x: &Lanes, y: &Lanes, f: impl Fn(f32, f32) -> f32) -> Lanes {
    let mut out = [0.0; ROWS];
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = f(*x, *y);
    }
    out
}
