//! What values are like: sums over them, and the figures that follow.

/// What values are like. Those that are no finite numbers are counted, and are in no other figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// NaN among them.
    pub nan: u64,
    /// Infinities among them.
    pub infinite: u64,
    /// Zeros among them.
    pub zeros: u64,
    /// The least.
    pub min: f32,
    /// The most.
    pub max: f32,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// How many lie in each of equal parts from the least to the most; empty if all are the same.
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

    /// Figures without a histogram.
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

/// Adds to `counts`, one for each of equal parts from `min` to `max`.
pub(super) fn count(numbers: &[f32], (min, max): (f32, f32), counts: &mut [u64]) {
    let scale = counts.len() as f64 / (f64::from(max) - f64::from(min));
    let last = counts.len() - 1;
    for x in numbers.iter().filter(|x| x.is_finite()) {
        let bar = ((f64::from(*x) - f64::from(min)) * scale) as usize;
        counts[bar.min(last)] += 1;
    }
}
