//! The filters that turn frequencies into mel bands, as in Slaney's Auditory Toolbox: linear below 1000
//! Hz, logarithmic above, each triangle with an area of 1.

use crate::RATE;
use crate::transform::BINS;

/// One triangle over the frequencies.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// The first bin with a weight.
    first: usize,
    /// Weights of that bin and the ones after it.
    weights: Vec<f64>,
}

impl Filter {
    /// The energy of a band, given that of each frequency.
    pub fn apply(&self, power: &[f64]) -> f64 {
        let bins = power.iter().skip(self.first);
        bins.zip(&self.weights).map(|(power, weight)| power * weight).sum()
    }

    /// The weight of a bin.
    #[cfg(test)]
    fn weight(&self, bin: usize) -> f64 {
        bin.checked_sub(self.first).and_then(|at| self.weights.get(at)).copied().unwrap_or(0.0)
    }
}

/// Filters for so many bands, from 0 Hz to half the sample rate.
pub(crate) fn filters(bands: usize) -> Vec<Filter> {
    let highest = RATE as f64 / 2.0;
    let step = mel(highest) / (bands + 1) as f64;
    let corner = |number: usize| hertz(step * number as f64);
    let frequency = |bin: usize| highest * bin as f64 / (BINS - 1) as f64;
    let filter = |band: usize| {
        let [low, middle, high] = [corner(band), corner(band + 1), corner(band + 2)];
        let weight = |bin: usize| {
            let rising = (frequency(bin) - low) / (middle - low);
            let falling = (high - frequency(bin)) / (high - middle);
            rising.min(falling).max(0.0) * 2.0 / (high - low)
        };
        let all: Vec<f64> = (0..BINS).map(weight).collect();
        let first = all.iter().position(|weight| *weight > 0.0).unwrap_or(0);
        let end = all.iter().rposition(|weight| *weight > 0.0).map_or(0, |last| last + 1);
        Filter { first, weights: all.get(first..end).unwrap_or_default().to_vec() }
    };
    (0..bands).map(filter).collect()
}

/// Hz of a step of the linear part.
const LINEAR: f64 = 200.0 / 3.0;
/// Where the logarithmic part begins, in Hz and in mel.
const KNEE: (f64, f64) = (1000.0, 15.0);

/// The growth of a step of the logarithmic part: 27 of them make 6.4 times the frequency.
fn growth() -> f64 {
    6.4f64.ln() / 27.0
}

fn mel(hertz: f64) -> f64 {
    match hertz < KNEE.0 {
        true => hertz / LINEAR,
        false => KNEE.1 + (hertz / KNEE.0).ln() / growth(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < KNEE.1 {
        true => mel * LINEAR,
        false => KNEE.0 * ((mel - KNEE.1) * growth()).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `transformers` 5.23.0 prints these: `testdata/mel_filters.py`.
    const REFERENCE: &str = include_str!("../testdata/mel_filters.csv");

    #[test]
    fn filters_are_those_of_transformers() {
        for bands in [80, 128] {
            let filters = filters(bands);
            let mut sums = vec![0.0; bands];
            let mut compared = 0;
            for line in REFERENCE.lines().skip(1) {
                let fields: Vec<&str> = line.split(',').collect();
                let number = |field: usize| fields[field].parse::<usize>().unwrap();
                if number(0) != bands {
                    continue;
                }
                let expected: f64 = fields[3].parse().unwrap();
                let found = filters[number(1)].weight(number(2));
                assert!((found - expected).abs() < 1e-12, "{line}: {found}");
                sums[number(1)] += expected;
                compared += 1;
            }
            assert!(compared > 300, "{compared}");
            // The file has all weights above zero, and so does a filter.
            for (filter, sum) in filters.iter().zip(sums) {
                let found: f64 = filter.weights.iter().sum();
                assert!((found - sum).abs() < 1e-12, "{found} {sum}");
            }
        }
    }
}
