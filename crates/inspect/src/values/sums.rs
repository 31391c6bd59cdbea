//! Basic statistics of values.

/// Basic statistics of values. NaN and infinity are counted, and excluded from all other statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of values.
    pub count: u64,
    /// Number of NaN.
    pub nan: u64,
    /// Number of infinities.
    pub infinite: u64,
    /// Number of zeros.
    pub zeros: u64,
    /// Minimum.
    pub min: f32,
    /// Maximum.
    pub max: f32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Histogram with equal bins from minimum to maximum; empty if all values are equal.
    pub histogram: Vec<u64>,
}

/// Sums over values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub count: u64,
    pub nan: u64,
    pub infinite: u64,
    pub zeros: u64,
    pub range: Option<(f32, f32)>,
    pub sum: f64,
    pub squares: f64,
}

impl Sums {
    pub fn of(numbers: &[f32]) -> Self {
        let mut sums = Self { count: numbers.len() as u64, ..Self::default() };
        for &x in numbers {
            if x.is_nan() {
                sums.nan += 1;
            } else if x.is_infinite() {
                sums.infinite += 1;
            } else {
                sums.zeros += u64::from(x == 0.0);
                sums.sum += f64::from(x);
                sums.squares += f64::from(x) * f64::from(x);
                let (min, max) = sums.range.unwrap_or((x, x));
                sums.range = Some((min.min(x), max.max(x)));
            }
        }
        sums
    }

    pub fn and(self, other: Self) -> Self {
        let range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Self {
            count: self.count + other.count,
            nan: self.nan + other.nan,
            infinite: self.infinite + other.infinite,
            zeros: self.zeros + other.zeros,
            range,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// Returns the statistics without a histogram.
    pub fn figures(&self) -> Figures {
        let (mean, deviation) = self.mean_and_deviation();
        let (min, max) = self.range.unwrap_or_default();
        Figures {
            count: self.count,
            nan: self.nan,
            infinite: self.infinite,
            zeros: self.zeros,
            min,
            max,
            mean,
            deviation,
            histogram: Vec::new(),
        }
    }

    pub fn mean_and_deviation(&self) -> (f64, f64) {
        let finite = (self.count - self.nan - self.infinite).max(1) as f64;
        let mean = self.sum / finite;
        (mean, (self.squares / finite - mean * mean).max(0.0).sqrt())
    }
}

/// Adds numbers to a histogram with equal bins from `min` to `max`.
pub(super) fn count(numbers: &[f32], (min, max): (f32, f32), counts: &mut [u64]) {
    let scale = counts.len() as f64 / (f64::from(max) - f64::from(min));
    let last = counts.len() - 1;
    for x in numbers.iter().filter(|x| x.is_finite()) {
        let bar = ((f64::from(*x) - f64::from(min)) * scale) as usize;
        counts[bar.min(last)] += 1;
    }
}
