//! Log-probabilities of logits.

use gguf_runtime::log_sum_exp;

/// Logits of a position with their normalization.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'l> {
    logits: &'l [f32],
    /// Maximum logit.
    max: f32,
    /// Logarithm of the sum of `exp(logit - max)`.
    log_sum: f64,
}

impl<'l> Scores<'l> {
    /// Normalizes logits; returns `None` if they contain NaN or are all negative infinity.
    pub fn new(logits: &'l [f32]) -> Option<Self> {
        let (max, log_sum) = log_sum_exp(logits);
        (max.is_finite() && log_sum.is_finite()).then_some(Self { logits, max, log_sum })
    }

    /// Uses log-probabilities as they are; returns `None` if one is not finite.
    pub fn from_log_probabilities(logarithms: &'l [f32]) -> Option<Self> {
        let max = logarithms.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let finite = logarithms.iter().all(|x| x.is_finite());
        let log_sum = -f64::from(max);
        finite.then_some(Self { logits: logarithms, max, log_sum })
    }

    /// Returns the number of tokens.
    pub fn width(&self) -> usize {
        self.logits.len()
    }

    /// Returns the log-probability of a token.
    pub fn log_probability(&self, id: usize) -> f64 {
        f64::from(self.logits[id]) - f64::from(self.max) - self.log_sum
    }

    /// Returns the most likely token; the first of equal ones.
    pub fn top(&self) -> usize {
        self.logits.iter().position(|x| *x == self.max).unwrap_or(0)
    }

    /// Returns the KL divergence of `other` from these probabilities. Tokens with a probability below `exp(-16)` are
    /// ignored, as in llama.cpp.
    pub fn divergence(&self, other: &Scores<'_>) -> f64 {
        let shift = f64::from(self.max) + self.log_sum;
        let other_shift = f64::from(other.max) + other.log_sum;
        let both = self.logits.iter().zip(other.logits);
        both.map(|(a, b)| {
            let log = f64::from(*a) - shift;
            if log <= -16.0 {
                return 0.0;
            }
            f64::from(libm::exp(f64::from(log as f32)) as f32)
                * (log - (f64::from(*b) - other_shift))
        })
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_and_divergence() {
        let logits = [[0.0, 0.0], [3f32.ln(), 0.0]];
        let [a, b] = logits.each_ref().map(|logits| Scores::new(logits).unwrap());
        assert!((a.log_probability(0) + 2f64.ln()).abs() < 1e-12);
        assert!((b.log_probability(0) - 0.75f64.ln()).abs() < 1e-7);
        assert_eq!((a.top(), b.top()), (0, 0));
        let expected = 0.5 * (0.5f64 / 0.75).ln() + 0.5 * (0.5f64 / 0.25).ln();
        assert!((a.divergence(&b) - expected).abs() < 1e-7);
        assert_eq!(a.divergence(&a), 0.0);
    }

    #[test]
    fn nan_and_infinity_are_rejected() {
        for logits in [[0.0, f32::NAN], [f32::INFINITY, 0.0], [f32::NEG_INFINITY; 2]] {
            assert!(Scores::new(&logits).is_none(), "{logits:?}");
        }
        assert!(Scores::new(&[0.0, f32::NEG_INFINITY]).is_some());
    }
}
