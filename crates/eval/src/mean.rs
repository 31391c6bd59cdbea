//! Means and their standard errors.

/// Running mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of the squares.
    pub squares: f64,
}

impl Mean {
    /// Adds a value.
    pub fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
        self.squares += number * number;
    }

    /// Adds the values of another mean.
    pub(crate) fn append(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Returns the mean; 0 without values.
    pub fn value(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// Returns the standard error of the mean of independent values; 0 for fewer than two.
    pub fn error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        let variance = self.squares / count - self.value() * self.value();
        (variance.max(0.0) / (count - 1.0)).sqrt()
    }
}

/// Returns the covariance of two means, given the sum of the products of their values.
pub(crate) fn covariance(a: &Mean, b: &Mean, products: f64) -> f64 {
    if a.count < 2 {
        return 0.0;
    }
    let count = a.count as f64;
    (products / count - a.value() * b.value()) / (count - 1.0)
}
