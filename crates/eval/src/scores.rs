//! What logits say of tokens.

use gguf_runtime::log_sum_exp;

/// Logits of a place, with what makes logarithms of probabilities of them.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'l> {
    logits: &'l [f32],
    /// The greatest logit.
    greatest: f32,
    /// The logarithm of the sum of all `exp(logit - greatest)`.
    log_sum: f64,
}

impl<'l> Scores<'l> {
    /// `None` if there is NaN among the logits, or all of them are negative infinity.
    pub fn new(logits: &'l [f32]) -> Option<Self> {
        let (greatest, log_sum) = log_sum_exp(logits);
        (greatest.is_finite() && log_sum.is_finite()).then_some(Self { logits, greatest, log_sum })
    }

    /// Of logarithms of probabilities, which are taken as they are. `None` if one is no number.
    pub fn of_logarithms(logarithms: &'l [f32]) -> Option<Self> {
        let greatest = logarithms.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let finite = logarithms.iter().all(|x| x.is_finite());
        let log_sum = -f64::from(greatest);
        finite.then_some(Self { logits: logarithms, greatest, log_sum })
    }

    /// The logarithm of the probability of a token.
    pub fn log_probability(&self, id: usize) -> f64 {
        f64::from(self.logits[id]) - f64::from(self.greatest) - self.log_sum
    }

    /// The most likely token; of equals the first.
    pub fn top(&self) -> usize {
        self.logits.iter().position(|x| *x == self.greatest).unwrap_or(0)
    }

    /// The Kullback-Leibler divergence of `other` from these: the mean, over these probabilities, of
    /// the difference of the logarithms. What is less likely than `exp(-16)` counts nothing, as in
    /// llama.cpp.
    pub fn divergence(&self, other: &Scores<'_>) -> f64 {
        let shift = f64::from(self.greatest) + self.log_sum;
        let other_shift = f64::from(other.greatest) + other.log_sum;
        let both = self.logits.iter().zip(other.logits);
        both.map(|(a, b)| {
            let log = f64::from(*a) - shift;
            if log <= -16.0 {
                return 0.0;
            }
            f64::from((log as f32).exp()) * (log - (f64::from(*b) - other_shift))
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
        let wanted = 0.5 * (0.5f64 / 0.75).ln() + 0.5 * (0.5f64 / 0.25).ln();
        assert!((a.divergence(&b) - wanted).abs() < 1e-7);
        assert_eq!(a.divergence(&a), 0.0);
    }

    #[test]
    fn what_is_no_number_is_found() {
        for logits in [[0.0, f32::NAN], [f32::INFINITY, 0.0], [f32::NEG_INFINITY; 2]] {
            assert!(Scores::new(&logits).is_none(), "{logits:?}");
        }
        assert!(Scores::new(&[0.0, f32::NEG_INFINITY]).is_some());
    }
}
