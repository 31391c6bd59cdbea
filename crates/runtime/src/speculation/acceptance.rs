//! Acceptance rate of the drafted tokens of a source.

/// Number of ranges of confidence.
const RANGES: usize = 8;

/// Tokens that the confidence of a source counts for.
const PRIOR: f64 = 4.0;

/// Share of earlier tokens of a range that a further one leaves.
const DECAY: f64 = 0.95;

/// Share of earlier tokens of a range that a token leaves that does not pay. Where such tokens are wrong, they are drafted
/// again rarely.
const FORGET: f64 = 0.997;

/// Probability that a token is right, before anything is known.
const FIRST_AVERAGE: f64 = 0.7;

/// Share of the last token in the average.
const WEIGHT: f64 = 0.1;

/// Drafts after which a source that does not pay is tried again.
const FIRST_PATIENCE: usize = 32;

/// Factor of the patience with each trial.
const IMPATIENCE: usize = 4;

/// Acceptance of a source by its confidence.
pub(super) struct Acceptance {
    /// Right tokens and all tokens of each range of confidence, decayed.
    ranges: [(f64, f64); RANGES],
    average: f64,
    /// Drafts without a token of the source since the last one.
    idle: usize,
    patience: usize,
}

impl Default for Acceptance {
    fn default() -> Self {
        let ranges = [(0.0, 0.0); RANGES];
        Self { ranges, average: FIRST_AVERAGE, idle: 0, patience: FIRST_PATIENCE }
    }
}

impl Acceptance {
    /// Returns the probability that a token of this confidence is right.
    pub fn probability(&self, confidence: f64) -> f64 {
        let (right, all) = self.ranges[range(confidence)];
        (right + PRIOR * confidence) / (all + PRIOR)
    }

    /// Returns the probability that a token of unknown confidence is right.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Adds the probability of a token to the average.
    pub fn expect(&mut self, probability: f64) {
        self.average += WEIGHT * (probability - self.average);
    }

    /// Records that a token of this confidence was right or wrong.
    pub fn record(&mut self, confidence: f64, is_right: bool) {
        let (right, all) = &mut self.ranges[range(confidence)];
        *right = DECAY * *right + f64::from(u8::from(is_right));
        *all = DECAY * *all + 1.0;
        self.idle = 0;
        if is_right {
            self.patience = FIRST_PATIENCE;
        }
    }

    /// Forgets a part of what is known of tokens of this confidence, because they are not drafted: in the end they are
    /// tried again.
    pub fn forget(&mut self, confidence: f64) {
        let (right, all) = &mut self.ranges[range(confidence)];
        (*right, *all) = (FORGET * *right, FORGET * *all);
    }

    /// Whether a source that is not expected to pay is tried again for this draft: more and more rarely.
    pub fn is_tried_again(&mut self) -> bool {
        self.idle += 1;
        let is_tried = self.idle >= self.patience;
        if is_tried {
            self.idle = 0;
            self.patience = self.patience.saturating_mul(IMPATIENCE);
        }
        is_tried
    }
}

/// Returns the range of a confidence: below 1/2, 3/4, 7/8, 15/16 and so on.
fn range(confidence: f64) -> usize {
    let doubt = (1.0 - confidence).max(f64::MIN_POSITIVE);
    ((-doubt.log2()).max(0.0) as usize).min(RANGES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_corrected() {
        assert_eq!(
            [0.0, 0.4, 0.5, 0.8, 0.9, 0.99, 1.0, f64::NAN].map(range),
            [0, 0, 1, 2, 3, 6, 7, 7]
        );
        let mut acceptance = Acceptance::default();
        assert_eq!(acceptance.probability(0.9), 0.9);
        (0..20).for_each(|_| acceptance.record(0.9, false));
        assert!(acceptance.probability(0.9) < 0.3);
        assert_eq!(acceptance.probability(0.99), 0.99, "another range");
        (0..1200).for_each(|_| acceptance.forget(0.9));
        assert!(acceptance.probability(0.9) > 0.75);
    }

    #[test]
    fn trials_become_rarer() {
        let mut acceptance = Acceptance::default();
        let mut trials = Vec::new();
        for draft in 1..=1000 {
            if acceptance.is_tried_again() {
                trials.push(draft);
            }
        }
        assert_eq!(trials, [32, 160, 672]);
        acceptance.record(0.9, true);
        assert_eq!((1..100).find(|_| acceptance.is_tried_again()), Some(32));
    }
}
