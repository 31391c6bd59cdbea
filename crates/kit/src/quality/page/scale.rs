//! Axes: numbers to places, and the numbers that are written beside them.

/// An axis, from the least to the greatest number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Numbers at both ends; their logarithms where the axis is logarithmic.
    numbers: [f64; 2],
    /// Places at both ends.
    places: [f64; 2],
    logarithmic: bool,
}

impl Scale {
    /// From round numbers to round numbers around all of `numbers`.
    pub fn linear(numbers: impl Iterator<Item = f64>, places: [f64; 2]) -> Self {
        let [low, high] = ends(numbers);
        let room = 0.04 * (high - low).max(high.abs() * 0.1).max(f64::MIN_POSITIVE);
        Self { numbers: [(low - room).max(0.0), high + room], places, logarithmic: false }
    }

    /// Around the logarithms of all `numbers`, which are above 0.
    pub fn logarithmic(numbers: impl Iterator<Item = f64>, places: [f64; 2]) -> Self {
        let [low, high] = ends(numbers.filter(|number| *number > 0.0).map(f64::log10));
        let room = 0.06 * (high - low).max(0.5);
        Self { numbers: [low - room, high + room], places, logarithmic: true }
    }

    /// Where a number is.
    pub fn place(&self, number: f64) -> f64 {
        let number = if self.logarithmic { number.max(1e-300).log10() } else { number };
        let [low, high] = self.numbers;
        let share = ((number - low) / (high - low)).clamp(0.0, 1.0);
        self.places[0] + share * (self.places[1] - self.places[0])
    }

    /// Round numbers along the axis, about so many.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        let [low, high] = self.numbers;
        if self.logarithmic {
            let all = |digits: &'static [f64]| -> Vec<f64> {
                let powers = low.floor() as i32..=high.ceil() as i32;
                let numbers =
                    powers.flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)));
                numbers.filter(|number| (low..=high).contains(&number.log10())).collect()
            };
            let tries = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]];
            let fit = tries.into_iter().map(all).find(|ticks| ticks.len() <= about.max(2));
            return fit.unwrap_or_else(|| all(&[1.0]));
        }
        let step = round((high - low) / about.max(1) as f64);
        let first = (low / step).ceil() as i64;
        (first..).map(|n| n as f64 * step).take_while(|number| *number <= high).collect()
    }
}

/// The least and the greatest of numbers, apart in any case.
fn ends(numbers: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = numbers
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
    match low <= high {
        true if low < high => [low, high],
        true => [low - low.abs() * 0.1 - 1e-9, high + high.abs() * 0.1 + 1e-9],
        false => [0.0, 1.0],
    }
}

/// The next round number: 1, 2, 2.5 or 5 times a power of ten.
fn round(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let digits = [1.0, 2.0, 2.5, 5.0, 10.0];
    let digit = digits.into_iter().find(|digit| digit * power >= step * 0.999);
    digit.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_round_numbers() {
        let scale = Scale::linear([2.0, 8.0].into_iter(), [0.0, 100.0]);
        assert_eq!(scale.ticks(4), [2.0, 4.0, 6.0, 8.0]);
        assert!(scale.place(2.0) > 0.0 && scale.place(8.0) < 100.0);
        assert!((scale.place(5.0) - 50.0).abs() < 1e-9);
        // Upside down, as pictures count from above.
        let scale = Scale::logarithmic([1e-4, 1e-2].into_iter(), [100.0, 0.0]);
        assert!((scale.place(1e-3) - 50.0).abs() < 1e-9);
        let ticks = scale.ticks(4);
        assert_eq!(ticks.len(), 3, "{ticks:?}");
        assert!(ticks.iter().zip([1e-4, 1e-3, 1e-2]).all(|(a, b)| (a / b - 1.0).abs() < 1e-9));
    }

    #[test]
    fn one_number_and_none_have_an_axis() {
        for numbers in [vec![], vec![3.0], vec![0.0]] {
            for scale in [
                Scale::linear(numbers.iter().copied(), [0.0, 1.0]),
                Scale::logarithmic(numbers.iter().copied(), [0.0, 1.0]),
            ] {
                assert!(scale.place(3.0).is_finite() && scale.ticks(5).len() < 20, "{scale:?}");
            }
        }
    }
}
