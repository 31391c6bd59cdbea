//! Means with their errors.

/// The mean of numbers that are told one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// How many numbers.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Mean {
    /// One number more.
    pub fn add(&mut self, number: f64) {
        self.count += 1;
        self.sum += number;
        self.squares += number * number;
    }

    /// All numbers of another mean more.
    pub(crate) fn append(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean; 0 of nothing.
    pub fn value(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The standard error of the mean, as if the numbers did not depend on each other; 0 of fewer than
    /// two.
    pub fn error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        let variance = self.squares / count - self.value() * self.value();
        (variance.max(0.0) / (count - 1.0)).sqrt()
    }
}

/// The covariance of two means, given the sum of the products of their numbers.
pub(crate) fn covariance(a: &Mean, b: &Mean, products: f64) -> f64 {
    if a.count < 2 {
        return 0.0;
    }
    let count = a.count as f64;
    (products / count - a.value() * b.value()) / (count - 1.0)
}
