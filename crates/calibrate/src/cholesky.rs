//! Cholesky factorization of the Hessian.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns that are eliminated together.
const BLOCK: usize = 64;

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
    /// Factorizes a symmetric matrix with a positive diagonal, `n` rows of `n`. A pivot that
    /// rounding reduces to about zero is replaced by a millionth of its diagonal element.
    pub fn new(matrix: &[f32], n: usize) -> Self {
        let mut a: Vec<f64> = matrix.iter().map(|x| f64::from(*x)).collect();
        let floor: Vec<f64> = (0..n).map(|i| 1e-6 * a[i * n + i]).collect();
        let mut d = vec![0.0; n];
        let mut end = n;
        // Starts with the last columns.
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            let (above, block) = a[..end * n].split_at_mut(start * n);
            for j in (0..end - start).rev() {
                let (before, rest) = block.split_at_mut(j * n);
                let row = &mut rest[..n];
                d[start + j] = row[start + j].max(floor[start + j]);
                row[..start + j].iter_mut().for_each(|x| *x /= d[start + j]);
                let row = &rest[..n];
                for (i, other) in before.chunks_exact_mut(n).enumerate() {
                    let factor = row[start + i] * d[start + j];
                    // Only the lower triangle of the block itself.
                    subtract_scaled(&mut other[..=start + i], factor, &row[..=start + i]);
                }
            }
            let (block, d) = (&*block, &d);
            above.par_chunks_exact_mut(n).enumerate().for_each(|(i, row)| {
                let factors = block.chunks_exact(n).zip(&d[start..]).map(|(other, d)| other[i] * d);
                let factors: Vec<f64> = factors.collect();
                Arch::new().dispatch(RowUpdate {
                    row: &mut row[..=i],
                    factors: &factors,
                    block,
                    n,
                });
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

/// Updates one row by the rows of a block.
struct RowUpdate<'r> {
    row: &'r mut [f64],
    factors: &'r [f64],
    block: &'r [f64],
    n: usize,
}

impl WithSimd for RowUpdate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        const BATCH: usize = 32;
        let Self { row, factors, block, n } = self;
        for (part, row) in row.chunks_mut(BATCH).enumerate() {
            let mut sums = [0.0; BATCH];
            sums[..row.len()].copy_from_slice(row);
            for (factor, other) in factors.iter().zip(block.chunks_exact(n)) {
                let other = &other[part * BATCH..];
                for (sum, other) in sums.iter_mut().zip(other) {
                    *sum = (-factor).mul_add(*other, *sum);
                }
            }
            row.copy_from_slice(&sums[..row.len()]);
        }
    }
}

/// `x -= factor y`.
fn subtract_scaled(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x -= factor * y);
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
        let CholeskyFactor { r, d, .. } = CholeskyFactor::new(&hessian.matrix, n);
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
