//! Second moments of what enters a product.

use gguf::Error;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Columns of a strip.
const STRIP: usize = 16;

/// Columns of the other side whose sums fit into registers beside a part of a strip.
const AT_ONCE: usize = 8;

/// Sums over the tokens that enter a product, `n` columns wide.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Columns.
    pub n: usize,
    /// Tokens that were summed.
    pub tokens: u64,
    /// Tokens of them that were held against those of the original.
    pub compared: u64,
    /// Sums of `y[i] y[j]`, `y` being the input of the quantized model (or of the only one): `n` rows of `n`.
    pub squares: Vec<f32>,
    /// Sums of `y[i] (x[j] - y[j])`, `x` being the input of the original: `n` rows of `n`. Empty if there is only one.
    pub drift: Vec<f32>,
}

impl Moments {
    /// Of no tokens yet.
    pub fn new(n: usize, with_drift: bool) -> Self {
        let drift = vec![0.0; if with_drift { n * n } else { 0 }];
        Self { n, tokens: 0, compared: 0, squares: vec![0.0; n * n], drift }
    }

    /// Adds tokens: rows of `n` numbers, of the quantized model and of the original.
    pub fn add(&mut self, y: &[f32], x: Option<&[f32]>) {
        let Self { n, .. } = *self;
        if n == 0 {
            return;
        }
        self.tokens += (y.len() / n) as u64;
        let ours = Strips::new(y.chunks_exact(n), n);
        add_outer(&ours, &ours, n, true, &mut self.squares);
        if let Some(x) = x.filter(|_| !self.drift.is_empty()) {
            self.compared += (x.len() / n) as u64;
            let apart: Vec<f32> = x.iter().zip(y).map(|(x, y)| x - y).collect();
            add_outer(&ours, &Strips::new(apart.chunks_exact(n), n), n, false, &mut self.drift);
        }
    }

    /// What was only summed below the diagonal is put above it, too. To be called after the last tokens.
    pub fn complete(&mut self) {
        for i in 0..self.n {
            for j in 0..i {
                self.squares[j * self.n + i] = self.squares[i * self.n + j];
            }
        }
    }

    /// Columns whose input is always 0.
    pub fn dead(&self) -> usize {
        (0..self.n).filter(|i| self.squares[i * self.n + i] == 0.0).count()
    }

    /// Whether the sums are numbers; `tensor` is what is multiplied.
    ///
    /// # Errors
    /// `weights-unusable`, with the first column whose sums are not.
    pub fn require_numbers(&self, tensor: &str) -> Result<(), Error> {
        match self.fault() {
            None => Ok(()),
            Some(column) => Err(Error::weights(
                tensor,
                format!("what is multiplied with column {column} is no number, or too large"),
            )),
        }
    }

    /// The first column whose sums are no numbers.
    pub fn fault(&self) -> Option<usize> {
        (0..self.n).find(|i| !self.squares[i * self.n + i].is_finite())
    }
}

/// Sums `rows[i] columns[j]` over tokens to a matrix of `rows` by `n`: what moments between unlike values are.
pub(crate) fn add_cross(rows: (&[f32], usize), y: &[f32], n: usize, out: &mut [f32]) {
    let (x, width) = rows;
    if n > 0 && width > 0 {
        let (x, y) = (Strips::new(x.chunks_exact(width), width), Strips::new(y.chunks_exact(n), n));
        add_outer(&x, &y, n, false, out);
    }
}

/// Tokens strip by strip: sixteen columns of each token in turn.
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

/// `out[i][j] += sum over tokens of a[i] b[j]`; if `lower`, only what is below the diagonal, by strips.
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
    /// The last strip of `b` that is wanted.
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
            for (part, out) in out.chunks_mut(AT_ONCE * n).enumerate() {
                let mut sums = [[0.0; STRIP]; AT_ONCE];
                for vector in 0..STRIP / S::F32_LANES.min(STRIP) {
                    let mut registers = [simd.splat_f32s(0.0); AT_ONCE];
                    let parts = a.as_flattened().as_chunks::<AT_ONCE>().0;
                    let parts = parts.iter().skip(part).step_by(STRIP / AT_ONCE);
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
    fn moments_are_sums_over_tokens() {
        let n = 37;
        let of = |seed: f32, tokens: usize| -> Vec<f32> {
            (0..tokens * n).map(|i| ((i as f32 + seed) * 0.37).sin()).collect()
        };
        let (y, x) = (of(0.0, 50), of(9.0, 50));
        let mut moments = Moments::new(n, true);
        moments.add(&y[..20 * n], Some(&x[..20 * n]));
        moments.add(&y[20 * n..], Some(&x[20 * n..]));
        moments.complete();
        assert_eq!(moments.tokens, 50);
        for i in 0..n {
            for j in 0..n {
                let tokens = y.chunks(n).zip(x.chunks(n));
                let (mut square, mut drift) = (0.0, 0.0);
                for (y, x) in tokens {
                    square += f64::from(y[i]) * f64::from(y[j]);
                    drift += f64::from(y[i]) * (f64::from(x[j]) - f64::from(y[j]));
                }
                // Fifty numbers up to 1 in single precision.
                assert!((f64::from(moments.squares[i * n + j]) - square).abs() < 1e-4);
                assert!((f64::from(moments.drift[i * n + j]) - drift).abs() < 1e-4);
            }
        }
    }
}
