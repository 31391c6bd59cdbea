//! Axes: map values to coordinates and choose tick values.

/// A linear or logarithmic axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Values at both ends; their logarithms for a logarithmic axis.
    values: [f64; 2],
    /// Coordinates of both ends.
    coordinates: [f64; 2],
    logarithmic: bool,
}

impl Axis {
    /// Creates a linear axis around `values`.
    pub fn linear(values: impl Iterator<Item = f64>, coordinates: [f64; 2]) -> Self {
        let [low, high] = range(values);
        let margin = 0.04 * (high - low).max(high.abs() * 0.1).max(f64::MIN_POSITIVE);
        Self { values: [(low - margin).max(0.0), high + margin], coordinates, logarithmic: false }
    }

    /// Creates a logarithmic axis around the positive `values`.
    pub fn logarithmic(values: impl Iterator<Item = f64>, coordinates: [f64; 2]) -> Self {
        let [low, high] = range(values.filter(|value| *value > 0.0).map(f64::log10));
        let margin = 0.06 * (high - low).max(0.5);
        Self { values: [low - margin, high + margin], coordinates, logarithmic: true }
    }

    /// Returns the coordinate of a value.
    pub fn coordinate(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(1e-300).log10() } else { value };
        let [low, high] = self.values;
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        self.coordinates[0] + share * (self.coordinates[1] - self.coordinates[0])
    }

    /// Returns about `count` round values along the axis.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let [low, high] = self.values;
        if self.logarithmic {
            let all = |digits: &'static [f64]| -> Vec<f64> {
                let powers = low.floor() as i32..=high.ceil() as i32;
                let values =
                    powers.flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)));
                values.filter(|value| (low..=high).contains(&value.log10())).collect()
            };
            let tries = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]];
            let fit = tries.into_iter().map(all).find(|ticks| ticks.len() <= count.max(2));
            return fit.unwrap_or_else(|| all(&[1.0]));
        }
        let step = round_up((high - low) / count.max(1) as f64);
        let first = (low / step).ceil() as i64;
        (first..).map(|n| n as f64 * step).take_while(|value| *value <= high).collect()
    }
}

/// Returns the minimum and maximum of values, widened if they are equal.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] =
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    match low <= high {
        true if low < high => [low, high],
        true => [low - low.abs() * 0.1 - 1e-9, high + high.abs() * 0.1 + 1e-9],
        false => [0.0, 1.0],
    }
}

/// Returns the next round number: 1, 2, 2.5 or 5 times a power of ten.
fn round_up(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let digits = [1.0, 2.0, 2.5, 5.0, 10.0];
    let digit = digits.into_iter().find(|digit| digit * power >= step * 0.999);
    digit.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_and_ticks() {
        let axis = Axis::linear([2.0, 8.0].into_iter(), [0.0, 100.0]);
        assert_eq!(axis.ticks(4), [2.0, 4.0, 6.0, 8.0]);
        assert!(axis.coordinate(2.0) > 0.0 && axis.coordinate(8.0) < 100.0);
        assert!((axis.coordinate(5.0) - 50.0).abs() < 1e-9);
        // The vertical coordinate grows downwards.
        let axis = Axis::logarithmic([1e-4, 1e-2].into_iter(), [100.0, 0.0]);
        assert!((axis.coordinate(1e-3) - 50.0).abs() < 1e-9);
        let ticks = axis.ticks(4);
        assert_eq!(ticks.len(), 3, "{ticks:?}");
        assert!(ticks.iter().zip([1e-4, 1e-3, 1e-2]).all(|(a, b)| (a / b - 1.0).abs() < 1e-9));
    }

    #[test]
    fn axes_of_one_value_or_none() {
        for values in [vec![], vec![3.0], vec![0.0]] {
            for axis in [
                Axis::linear(values.iter().copied(), [0.0, 1.0]),
                Axis::logarithmic(values.iter().copied(), [0.0, 1.0]),
            ] {
                assert!(axis.coordinate(3.0).is_finite() && axis.ticks(5).len() < 20, "{axis:?}");
            }
        }
    }
}
