//! Second moments as a product of triangles.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Columns that are eliminated together.
const BLOCK: usize = 64;

/// Moments `H` as `RT D R`, `R` being lower triangular with ones on its diagonal and `D` diagonal: then
/// `eT H e` is the sum of `d[j] (e[j] + sum of R[j][k] e[k] for k < j)^2`, and each error can be made up for by the
/// columns after it.
pub struct Factor {
    /// Columns.
    pub n: usize,
    /// `R`, `n` rows of `n`.
    pub r: Vec<f32>,
    /// `D`.
    pub d: Vec<f32>,
}

impl Factor {
    /// Of symmetric moments, positive on their diagonal, `n` rows of `n`. A pivot that rounding makes as good
    /// as zero becomes a millionth of its diagonal.
    pub fn new(squares: &[f32], n: usize) -> Self {
        let mut a: Vec<f64> = squares.iter().map(|x| f64::from(*x)).collect();
        let least: Vec<f64> = (0..n).map(|i| 1e-6 * a[i * n + i]).collect();
        let mut d = vec![0.0; n];
        let mut end = n;
        // The last columns first.
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            let (above, block) = a[..end * n].split_at_mut(start * n);
            for j in (0..end - start).rev() {
                let (before, rest) = block.split_at_mut(j * n);
                let row = &mut rest[..n];
                d[start + j] = row[start + j].max(least[start + j]);
                row[..start + j].iter_mut().for_each(|x| *x /= d[start + j]);
                let row = &rest[..n];
                for (i, other) in before.chunks_exact_mut(n).enumerate() {
                    let factor = row[start + i] * d[start + j];
                    // Of the rows of the block everything, of itself only what is below the diagonal.
                    subtract(&mut other[..=start + i], factor, &row[..=start + i]);
                }
            }
            let (block, d) = (&*block, &d);
            above.par_chunks_exact_mut(n).enumerate().for_each(|(i, row)| {
                let factors = block.chunks_exact(n).zip(&d[start..]).map(|(other, d)| other[i] * d);
                let factors: Vec<f64> = factors.collect();
                Arch::new().dispatch(Rest { row: &mut row[..=i], factors: &factors, block, n });
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

/// What is left of a row without rows of a block.
struct Rest<'r> {
    row: &'r mut [f64],
    factors: &'r [f64],
    block: &'r [f64],
    n: usize,
}

impl WithSimd for Rest<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        const AT_ONCE: usize = 32;
        let Self { row, factors, block, n } = self;
        for (part, row) in row.chunks_mut(AT_ONCE).enumerate() {
            let mut sums = [0.0; AT_ONCE];
            sums[..row.len()].copy_from_slice(row);
            for (factor, other) in factors.iter().zip(block.chunks_exact(n)) {
                let other = &other[part * AT_ONCE..];
                for (sum, other) in sums.iter_mut().zip(other) {
                    *sum = (-factor).mul_add(*other, *sum);
                }
            }
            row.copy_from_slice(&sums[..row.len()]);
        }
    }
}

/// `x -= factor y`.
fn subtract(x: &mut [f64], factor: f64, y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x -= factor * y);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_of_the_factors_is_the_matrix() {
        let n = 150;
        let x: Vec<f32> = (0..n * 400).map(|i| ((i * i) as f32 * 0.013).sin()).collect();
        let mut moments = crate::Moments::new(n, false);
        moments.add(&x, None);
        moments.complete();
        let Factor { r, d, .. } = Factor::new(&moments.squares, n);
        for i in 0..n {
            for j in 0..n {
                let terms = (0..n)
                    .map(|k| f64::from(r[k * n + i]) * f64::from(d[k]) * f64::from(r[k * n + j]));
                let (made, wanted) = (terms.sum::<f64>(), f64::from(moments.squares[i * n + j]));
                // Of sums of about 200, in single precision.
                assert!((made - wanted).abs() < 1e-2, "{i} {j}: {made} {wanted}");
            }
        }
    }
}
