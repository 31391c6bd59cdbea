//! Linear algebra over several rows of a matrix at a time, one lane per row.
//!
//! Every operation does the same for each row, in an order that depends only on the shape, so
//! results are identical with any number of threads and on every machine.

use std::ops::Range;

use pulp::Simd;

/// Number of rows per tile.
pub(crate) const ROWS: usize = 16;

/// One number per row.
pub(crate) type Lanes = [f32; ROWS];

/// Returns up to [`ROWS`] rows of `n` as columns with one number per row.
pub(crate) fn lanes_of(rows: &[f32], n: usize) -> Vec<Lanes> {
    let mut columns = vec![[0.0; ROWS]; n];
    for (number, row) in rows.chunks_exact(n).enumerate() {
        columns.iter_mut().zip(row).for_each(|(column, x)| column[number] = *x);
    }
    columns
}

/// Number of rows of the left operand that are multiplied together.
const BATCH: usize = 8;

/// `out[j - js.start] = sum of a[j][k] x[k - ks.start]` for `k` in `ks`, where `a` has rows of `n`.
#[inline(always)]
pub(crate) fn matmul<S: Simd>(
    simd: S,
    (a, n): (&[f32], usize),
    js: Range<usize>,
    ks: Range<usize>,
    x: &[Lanes],
    out: &mut [Lanes],
) {
    let row = |j: usize| &a[j * n..][ks.clone()];
    let mut j = js.start;
    let (batches, rest) = out.as_chunks_mut::<BATCH>();
    for out in batches {
        let rows: [&[f32]; BATCH] = std::array::from_fn(
            #[inline(always)]
            |i| row(j + i),
        );
        multiply(simd, rows, x, out);
        j += BATCH;
    }
    for out in rest {
        multiply(simd, [row(j)], x, std::array::from_mut(out));
        j += 1;
    }
}

/// `out[j] = sum of rows[j][k] x[k]`.
#[inline(always)]
fn multiply<S: Simd, const N: usize>(
    simd: S,
    rows: [&[f32]; N],
    x: &[Lanes],
    out: &mut [Lanes; N],
) {
    let len = rows[0].len().min(x.len());
    let rows = rows.map(
        #[inline(always)]
        |row| &row[..len],
    );
    for vector in 0..ROWS / S::F32_LANES {
        let mut sums = [simd.splat_f32s(0.0); N];
        for (k, x) in x[..len].iter().enumerate() {
            let x = S::as_simd_f32s(x).0[vector];
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = simd.mul_add_f32s(simd.splat_f32s(row[k]), x, *sum);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            S::as_mut_simd_f32s(out).0[vector] = sum;
        }
    }
}

/// Number of columns solved one by one before all others are updated.
const STEP: usize = 8;

/// Solves `u R = b` in place, with `R` unit lower triangular.
#[inline(always)]
pub(crate) fn solve_unit_lower<S: Simd>(simd: S, r: &[f32], b: &mut [Lanes]) {
    let n = b.len();
    for start in (0..n).step_by(STEP).rev() {
        let end = n.min(start + STEP);
        for k in (start + 1..end).rev() {
            let minus = b[k].map(|x| -x);
            for (b, r) in b[start..k].iter_mut().zip(&r[k * n + start..]) {
                add_scaled(simd, b, *r, &minus);
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
                add_scaled(simd, &mut sum, row[j], minus);
            }
            *b = sum;
        }
    }
}

/// Solves `x Rᵀ = b` in place, with `R` unit lower triangular.
#[inline(always)]
pub(crate) fn solve_unit_lower_transposed<S: Simd>(simd: S, r: &[f32], b: &mut [Lanes]) {
    let n = b.len();
    for start in (0..n).step_by(STEP) {
        let end = n.min(start + STEP);
        let mut sums = [[0.0; ROWS]; STEP];
        matmul(simd, (r, n), start..end, 0..start, &b[..start], &mut sums[..end - start]);
        for k in start..end {
            let mut sum = sums[k - start];
            for (x, r) in b[start..k].iter().zip(&r[k * n + start..]) {
                add_scaled(simd, &mut sum, *r, x);
            }
            b[k] = zip(&b[k], &sum, |b, sum| b - sum);
        }
    }
}

/// `sums += a x`.
#[inline(always)]
pub(crate) fn add_scaled<S: Simd>(simd: S, sums: &mut Lanes, a: f32, x: &Lanes) {
    let a = simd.splat_f32s(a);
    for (sum, x) in S::as_mut_simd_f32s(sums).0.iter_mut().zip(S::as_simd_f32s(x).0) {
        *sum = simd.mul_add_f32s(a, *x, *sum);
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
