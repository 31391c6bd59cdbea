//! The Hessian of a matrix: second moments of its inputs.

use gguf::Error;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns per strip.
const STRIP: usize = 16;

/// Number of columns of the left operand per register block.
const BATCH: usize = 8;

/// Sums over the input tokens of a matrix with `n` columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Hessian {
    /// Number of columns.
    pub n: usize,
    /// Number of tokens.
    pub tokens: u64,
    /// Number of tokens that were compared with the original model.
    pub compared: u64,
    /// `Y Yᵀ`: sums of `y[i] y[j]`, where `y` is the input in the quantized model (or the only
    /// model); `n` rows of `n`.
    pub matrix: Vec<f32>,
    /// Sums of `y[i] (x[j] - y[j])`, where `x` is the input in the original model; `n` rows of `n`.
    /// Empty without an original model.
    pub drift: Vec<f32>,
}

impl Hessian {
    /// Creates empty sums.
    pub fn new(n: usize, with_drift: bool) -> Self {
        let drift = vec![0.0; if with_drift { n * n } else { 0 }];
        Self { n, tokens: 0, compared: 0, matrix: vec![0.0; n * n], drift }
    }

    /// Adds tokens, as rows of `n` numbers: the inputs in the quantized model and in the original.
    pub fn add(&mut self, y: &[f32], x: Option<&[f32]>) {
        let Self { n, .. } = *self;
        if n == 0 {
            return;
        }
        self.tokens += (y.len() / n) as u64;
        let y_strips = Strips::new(y.chunks_exact(n), n);
        add_outer(&y_strips, &y_strips, n, true, &mut self.matrix);
        if let Some(x) = x.filter(|_| !self.drift.is_empty()) {
            self.compared += (x.len() / n) as u64;
            let difference: Vec<f32> = x.iter().zip(y).map(|(x, y)| x - y).collect();
            add_outer(
                &y_strips,
                &Strips::new(difference.chunks_exact(n), n),
                n,
                false,
                &mut self.drift,
            );
        }
    }

    /// Copies the lower triangle to the upper. Call it after the last tokens.
    pub fn symmetrize(&mut self) {
        for i in 0..self.n {
            for j in 0..i {
                self.matrix[j * self.n + i] = self.matrix[i * self.n + j];
            }
        }
    }

    /// Returns the number of columns whose input is always 0.
    pub fn dead_columns(&self) -> usize {
        (0..self.n).filter(|i| self.matrix[i * self.n + i] == 0.0).count()
    }

    /// Checks that the sums are finite; `tensor` names the matrix in the error.
    ///
    /// # Errors
    /// Returns `weights-unusable` with the first column whose sums are not finite.
    pub fn require_finite(&self, tensor: &str) -> Result<(), Error> {
        match self.first_non_finite() {
            None => Ok(()),
            Some(column) => Err(Error::weights(
                tensor,
                format!("the input of column {column} is NaN or infinite, or its squares overflow"),
            )),
        }
    }

    /// Returns the first column whose sums are not finite.
    pub fn first_non_finite(&self) -> Option<usize> {
        (0..self.n).find(|i| !self.matrix[i * self.n + i].is_finite())
    }
}

/// Adds the sums of `rows[i] columns[j]` over tokens to a matrix of `rows` by `n`: the
/// cross-covariance of two values.
pub(crate) fn add_cross(rows: (&[f32], usize), y: &[f32], n: usize, out: &mut [f32]) {
    let (x, width) = rows;
    if n > 0 && width > 0 {
        let (x, y) = (Strips::new(x.chunks_exact(width), width), Strips::new(y.chunks_exact(n), n));
        add_outer(&x, &y, n, false, out);
    }
}

/// Tokens in strips of sixteen columns.
struct Strips {
    tokens: usize,
    data: Vec<[f32; STRIP]>,
}

impl Strips {
    fn new<'r>(rows: impl ExactSizeIterator<Item = &'r [f32]>, n: usize) -> Self {
        let tokens = rows.len();
        let mut data = vec![[0.0; STRIP]; tokens * n.div_ceil(STRIP)];
        for (t, row) in rows.enumerate() {
            for (strip, part) in row.chunks(STRIP).enumerate() {
                data[strip * tokens + t][..part.len()].copy_from_slice(part);
            }
        }
        Self { tokens, data }
    }

    fn strip(&self, number: usize) -> &[[f32; STRIP]] {
        &self.data[number * self.tokens..][..self.tokens]
    }
}

/// `out[i][j] += sum over tokens of a[i] b[j]`; with `lower`, only the strips up to the diagonal.
fn add_outer(a: &Strips, b: &Strips, n: usize, lower: bool, out: &mut [f32]) {
    out.par_chunks_mut(STRIP * n).enumerate().for_each(|(strip, out)| {
        Arch::new().dispatch(Outer {
            a: a.strip(strip),
            b,
            n,
            last: if lower { strip } else { usize::MAX },
            out,
        });
    });
}

struct Outer<'o> {
    a: &'o [[f32; STRIP]],
    b: &'o Strips,
    n: usize,
    /// Last strip of `b` to compute.
    last: usize,
    out: &'o mut [f32],
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, b, n, last, out } = self;
        let strips = n.div_ceil(STRIP).min(last.saturating_add(1));
        for strip in 0..strips {
            let columns = STRIP.min(n - strip * STRIP);
            let b = b.strip(strip);
            for (part, out) in out.chunks_mut(BATCH * n).enumerate() {
                let mut sums = [[0.0; STRIP]; BATCH];
                for vector in 0..STRIP / S::F32_LANES.min(STRIP) {
                    let mut registers = [simd.splat_f32s(0.0); BATCH];
                    let parts = a.as_flattened().as_chunks::<BATCH>().0;
                    let parts = parts.iter().skip(part).step_by(STRIP / BATCH);
                    for (a, b) in parts.zip(b) {
                        let b = S::as_simd_f32s(b).0[vector];
                        for (sum, a) in registers.iter_mut().zip(a) {
                            *sum = simd.mul_add_f32s(simd.splat_f32s(*a), b, *sum);
                        }
                    }
                    for (sums, register) in sums.iter_mut().zip(registers) {
                        S::as_mut_simd_f32s(sums).0[vector] = register;
                    }
                }
                for (out, sums) in out.chunks_mut(n).zip(&sums) {
                    let out = &mut out[strip * STRIP..][..columns];
                    out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hessian_sums_over_tokens() {
        let n = 37;
        let of = |seed: f32, tokens: usize| -> Vec<f32> {
            (0..tokens * n).map(|i| ((i as f32 + seed) * 0.37).sin()).collect()
        };
        let (y, x) = (of(0.0, 50), of(9.0, 50));
        let mut hessian = Hessian::new(n, true);
        hessian.add(&y[..20 * n], Some(&x[..20 * n]));
        hessian.add(&y[20 * n..], Some(&x[20 * n..]));
        hessian.symmetrize();
        assert_eq!(hessian.tokens, 50);
        for i in 0..n {
            for j in 0..n {
                let tokens = y.chunks(n).zip(x.chunks(n));
                let (mut square, mut drift) = (0.0, 0.0);
                for (y, x) in tokens {
                    square += f64::from(y[i]) * f64::from(y[j]);
                    drift += f64::from(y[i]) * (f64::from(x[j]) - f64::from(y[j]));
                }
                // Sums of fifty numbers up to 1 in single precision.
                assert!((f64::from(hessian.matrix[i * n + j]) - square).abs() < 1e-4);
                assert!((f64::from(hessian.drift[i * n + j]) - drift).abs() < 1e-4);
            }
        }
    }
}
