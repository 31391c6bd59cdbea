//! Cholesky factorization of the Hessian.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Number of rows that are eliminated together.
const BLOCK: usize = 64;

/// Number of columns per strip, and of rows that are updated together.
const STRIP: usize = 8;

/// Some columns of the rows of a block.
type Strip = [[f64; STRIP]; BLOCK];

/// Factorization `H = Rᵀ D R` with `R` unit lower triangular and `D` diagonal. `eᵀ H e` is then the
/// sum of `d[j] (e[j] + sum of R[j][k] e[k] for k < j)^2`, so the later columns can compensate the
/// error of each column.
pub struct CholeskyFactor {
    /// Number of columns.
    pub n: usize,
    /// `R`, `n` rows of `n`.
    pub r: Vec<f32>,
    /// `D`.
    pub d: Vec<f32>,
}

impl CholeskyFactor {
    /// Factorizes a symmetric matrix of `n` rows of `n`, with `diagonal` in place of its own, `n` positive numbers. A pivot that
    /// rounding reduces to about zero is replaced by a millionth of its diagonal element.
    pub fn new(matrix: &[f32], diagonal: &[f32]) -> Self {
        let n = diagonal.len();
        let mut a: Vec<f64> = matrix.iter().map(|x| f64::from(*x)).collect();
        a.iter_mut().step_by(n + 1).zip(diagonal).for_each(|(to, from)| *to = f64::from(*from));
        let floor: Vec<f64> = diagonal.iter().map(|x| 1e-6 * f64::from(*x)).collect();
        let mut d = vec![0.0; n];
        let mut end = n;
        // Starts with the last rows.
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            let (above, block) = a[..end * n].split_at_mut(start * n);
            // `factors[k][j]` is `R[k][j] d[k]` for the rows and columns of the block.
            let mut factors = [[0.0; BLOCK]; BLOCK];
            for j in (0..end - start).rev() {
                let (before, rest) = block.split_at_mut(j * n);
                let row = &mut rest[start..start + j + 1];
                let pivot = row[j].max(floor[start + j]);
                d[start + j] = pivot;
                factors[j][..j].copy_from_slice(&row[..j]);
                row[..j].iter_mut().for_each(|x| *x /= pivot);
                for (i, other) in before.chunks_exact_mut(n).enumerate() {
                    let others = other[start..].iter_mut().zip(&row[..=i]);
                    others.for_each(|(other, x)| *other -= factors[j][i] * x);
                }
            }
            let (pivots, rows) = (&d[start..end], &*block);
            let strip = |first: usize| {
                let mut strip = [[0.0; STRIP]; BLOCK];
                for (place, row) in strip.iter_mut().zip(rows.chunks_exact(n)) {
                    let row = &row[first..start.min(first + STRIP)];
                    place[..row.len()].copy_from_slice(row);
                }
                Arch::new().dispatch(Solve { strip: &mut strip, factors: &factors, pivots });
                strip
            };
            let strips: Vec<Strip> = (0..start.div_ceil(STRIP))
                .into_par_iter()
                .map(|number| strip(number * STRIP))
                .collect();
            above.par_chunks_mut(STRIP * n).enumerate().for_each(|(number, rows)| {
                Arch::new().dispatch(Update { rows, n, strips: &strips[..=number], pivots });
            });
            block.par_chunks_exact_mut(n).enumerate().for_each(|(j, row)| {
                for (row, strip) in row[..start].chunks_mut(STRIP).zip(&strips) {
                    row.copy_from_slice(&strip[j][..row.len()]);
                }
            });
            end = start;
        }
        let mut r = vec![0.0; n * n];
        for (i, (row, a)) in r.chunks_exact_mut(n.max(1)).zip(a.chunks_exact(n.max(1))).enumerate()
        {
            row[..i].iter_mut().zip(a).for_each(|(r, a)| *r = *a as f32);
            row[i] = 1.0;
        }
        Self { n, r, d: d.iter().map(|d| *d as f32).collect() }
    }
}

/// Computes the rows of `R` of a block, for some columns before it.
struct Solve<'s> {
    strip: &'s mut Strip,
    factors: &'s [[f64; BLOCK]; BLOCK],
    pivots: &'s [f64],
}

impl WithSimd for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { strip, factors, pivots } = self;
        for vector in 0..STRIP / S::F64_LANES {
            for (j, pivot) in pivots.iter().enumerate().rev() {
                let mut sum = S::as_simd_f64s(&strip[j]).0[vector];
                for (factors, row) in factors[..pivots.len()].iter().zip(&*strip).skip(j + 1) {
                    let row = S::as_simd_f64s(row).0[vector];
                    sum = simd.mul_add_f64s(simd.splat_f64s(-factors[j]), row, sum);
                }
                let row = &mut S::as_mut_simd_f64s(&mut strip[j]).0[vector];
                *row = simd.div_f64s(sum, simd.splat_f64s(*pivot));
            }
        }
    }
}

/// Subtracts from some rows what the rows of a block below eliminate.
struct Update<'u> {
    /// `STRIP` rows of `n`, or fewer at the end.
    rows: &'u mut [f64],
    n: usize,
    /// Strips of the block, up to that with the columns of the diagonal.
    strips: &'u [Strip],
    pivots: &'u [f64],
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, n, strips, pivots } = self;
        let Some(own) = strips.last() else { return };
        let mut factors = [[0.0; STRIP]; BLOCK];
        for (factors, (own, pivot)) in factors.iter_mut().zip(own.iter().zip(pivots)) {
            *factors = own.map(|x| -x * pivot);
        }
        for (number, strip) in strips.iter().enumerate() {
            let mut sums = [[0.0; STRIP]; STRIP];
            for vector in 0..STRIP / S::F64_LANES {
                let mut registers = [simd.splat_f64s(0.0); STRIP];
                for (factors, x) in factors.iter().zip(strip) {
                    let x = S::as_simd_f64s(x).0[vector];
                    for (sum, factor) in registers.iter_mut().zip(factors) {
                        *sum = simd.mul_add_f64s(simd.splat_f64s(*factor), x, *sum);
                    }
                }
                for (sums, register) in sums.iter_mut().zip(registers) {
                    S::as_mut_simd_f64s(sums).0[vector] = register;
                }
            }
            for (row, sums) in rows.chunks_exact_mut(n).zip(&sums) {
                row[number * STRIP..].iter_mut().zip(sums).for_each(|(x, sum)| *x += sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply_to_the_matrix() {
        let n = 150;
        let x: Vec<f32> = (0..n * 400).map(|i| ((i * i) as f32 * 0.013).sin()).collect();
        let mut hessian = crate::Hessian::new(n, false);
        hessian.add(&x, None);
        hessian.symmetrize();
        let CholeskyFactor { r, d, .. } =
            CholeskyFactor::new(&hessian.matrix, &hessian.damped_diagonal(0.0));
        for i in 0..n {
            for j in 0..n {
                let terms = (0..n)
                    .map(|k| f64::from(r[k * n + i]) * f64::from(d[k]) * f64::from(r[k * n + j]));
                let (product, desired) = (terms.sum::<f64>(), f64::from(hessian.matrix[i * n + j]));
                // The sums are about 200, in single precision.
                assert!((product - desired).abs() < 1e-2, "{i} {j}: {product} {desired}");
            }
        }
    }
}
