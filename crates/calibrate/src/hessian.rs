//! The Hessian of a matrix: second moments of its inputs.

use gguf::Error;

use crate::products::Rounded;

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
        let rounded = Rounded::new(y, n);
        rounded.add_products(&rounded, true, &mut self.matrix);
        if let Some(x) = x.filter(|_| !self.drift.is_empty()) {
            self.compared += (x.len() / n) as u64;
            let difference: Vec<f32> = x.iter().zip(y).map(|(x, y)| x - y).collect();
            rounded.add_products(&Rounded::new(&difference, n), false, &mut self.drift);
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

    /// Returns the diagonal of the symmetrized sums with `damping` times its mean added: once for many tokens, twice for as many
    /// tokens as columns. A column that is always 0 gets the mean.
    pub fn damped_diagonal(&self, damping: f32) -> Vec<f32> {
        let Self { n, tokens, matrix, .. } = self;
        let diagonal = || matrix.iter().step_by(n + 1);
        let mean = diagonal().map(|x| f64::from(*x)).sum::<f64>() / (*n).max(1) as f64;
        let mean = if mean > 0.0 { mean as f32 } else { 1.0 };
        let damping = damping * (1.0 + *n as f32 / (*tokens as f32).max(1.0));
        diagonal().map(|x| if *x > 0.0 { x + damping * mean } else { mean }).collect()
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
        Rounded::new(x, width).add_products(&Rounded::new(y, n), false, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers up to 127 in magnitude, which INT8 with a scale of 1 represents exactly.
    fn whole_numbers(seed: usize, tokens: usize, n: usize) -> Vec<f32> {
        let number = |i: usize| if i < n { 127.0 } else { ((i * 31 + seed) % 255) as f32 - 127.0 };
        (0..tokens * n).map(number).collect()
    }

    #[test]
    fn sums_over_tokens() {
        let (n, tokens) = (37, 50);
        let (y, difference) = (whole_numbers(0, tokens, n), whole_numbers(9, tokens, n));
        let x: Vec<f32> = y.iter().zip(&difference).map(|(y, difference)| y + difference).collect();
        let mut hessian = Hessian::new(n, true);
        hessian.add(&y, Some(&x));
        hessian.symmetrize();
        assert_eq!(hessian.tokens, tokens as u64);
        for i in 0..n {
            for j in 0..n {
                let sum = |other: &[f32]| -> f32 {
                    y.chunks(n).zip(other.chunks(n)).map(|(y, other)| y[i] * other[j]).sum()
                };
                assert_eq!(hessian.matrix[i * n + j], sum(&y));
                assert_eq!(hessian.drift[i * n + j], sum(&difference));
            }
        }
    }

    #[test]
    fn sums_grow_with_tokens() {
        let n = 20;
        let of = |seed: f32, tokens: usize| -> Vec<f32> {
            (0..tokens * n).map(|i| ((i as f32 + seed) * 0.37).sin()).collect()
        };
        // More tokens than have a common scale.
        let (first, second) = (of(0.0, 30), of(5.0, 300));
        let mut hessian = Hessian::new(n, false);
        hessian.add(&first, None);
        hessian.add(&second, None);
        hessian.symmetrize();
        for i in 0..n {
            for j in 0..n {
                let tokens = first.chunks(n).chain(second.chunks(n));
                let sum: f32 = tokens.map(|y| y[i] * y[j]).sum();
                // Each factor is up to 1 and at most 1/254 off, in either direction.
                assert!((hessian.matrix[i * n + j] - sum).abs() < 0.2, "{i} {j}");
            }
        }
    }
}
