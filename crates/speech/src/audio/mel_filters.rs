//! Mel filter bank as in Slaney's Auditory Toolbox: linear below 1000 Hz, logarithmic above, each triangular
//! filter with an area of 1.

use super::{BINS, RATE};

/// A triangular filter over frequency bins.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Index of the first bin with a weight above zero.
    first: usize,
    /// Weights of the bins from `first` on.
    weights: Vec<f64>,
}

impl Filter {
    /// Returns the energy of the band for the power of each frequency bin.
    pub fn apply(&self, power: &[f64]) -> f64 {
        let bins = power.iter().skip(self.first);
        bins.zip(&self.weights).map(|(power, weight)| power * weight).sum()
    }

    /// Returns the weight of a bin.
    #[cfg(test)]
    fn weight(&self, bin: usize) -> f64 {
        bin.checked_sub(self.first).and_then(|at| self.weights.get(at)).copied().unwrap_or(0.0)
    }
}

/// Returns the filters of `bands` mel bands from 0 Hz to half the sample rate.
pub(super) fn filters(bands: usize) -> Vec<Filter> {
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

/// Width of one mel in the linear part, in Hz.
const HZ_PER_MEL: f64 = 200.0 / 3.0;
/// Start of the logarithmic part, in Hz.
const LOG_START_HZ: f64 = 1000.0;
/// Start of the logarithmic part, in mel.
const LOG_START_MEL: f64 = 15.0;

/// Natural logarithm of the frequency ratio of one mel in the logarithmic part: 27 mel are a factor of 6.4.
fn log_step() -> f64 {
    6.4f64.ln() / 27.0
}

fn mel(hertz: f64) -> f64 {
    match hertz < LOG_START_HZ {
        true => hertz / HZ_PER_MEL,
        false => LOG_START_MEL + (hertz / LOG_START_HZ).ln() / log_step(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < LOG_START_MEL {
        true => mel * HZ_PER_MEL,
        false => LOG_START_HZ * ((mel - LOG_START_MEL) * log_step()).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights that `transformers` 5.23.0 computes, from `testdata/mel_filters.py`.
    const REFERENCE: &str = include_str!("../../testdata/mel_filters.csv");

    #[test]
    fn filters_match_transformers() {
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
            // The reference lists all weights above zero; so does a filter.
            for (filter, sum) in filters.iter().zip(sums) {
                let found: f64 = filter.weights.iter().sum();
                assert!((found - sum).abs() < 1e-12, "{found} {sum}");
            }
        }
    }
}
