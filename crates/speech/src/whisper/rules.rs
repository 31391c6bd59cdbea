//! Logit filters for suppressed tokens and timestamps, as in Whisper's reference implementation (`decoding.py`).

use super::vocabulary::Vocabulary;

/// Constraints on the tokens of a window.
pub(super) struct LogitRules<'v> {
    pub vocabulary: &'v Vocabulary,
    /// Whether the model predicts timestamps.
    pub timestamps: bool,
    /// Latest timestamp step at which the text of a window may start.
    pub max_initial_timestamp: u32,
}

impl LogitRules<'_> {
    /// Sets the logits of tokens that must not follow `sampled` to negative infinity.
    pub fn apply(&self, sampled: &[u32], logits: &mut [f32]) {
        let Vocabulary { suppressed, suppressed_at_start, .. } = self.vocabulary;
        let at_start = if sampled.is_empty() { suppressed_at_start.as_slice() } else { &[] };
        for id in suppressed.iter().chain(at_start) {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit = f32::NEG_INFINITY;
            }
        }
        if self.timestamps {
            self.apply_timestamps(sampled, logits);
        }
    }

    /// Timestamps come in pairs (end of a segment, start of the next), except at the start of the text and before its
    /// end, and do not decrease.
    fn apply_timestamps(&self, sampled: &[u32], logits: &mut [f32]) {
        let Vocabulary { end, no_timestamps, first_timestamp, .. } = *self.vocabulary;
        let (end, first_timestamp) = (end as usize, first_timestamp as usize);
        forbid(logits, no_timestamps as usize, no_timestamps as usize + 1);
        let is_timestamp = |id: &u32| *id as usize >= first_timestamp;
        let last = sampled.last().is_some_and(is_timestamp);
        let before_last =
            sampled.len() < 2 || sampled.iter().rev().nth(1).is_some_and(is_timestamp);
        match (last, before_last) {
            (true, true) => forbid(logits, first_timestamp, usize::MAX),
            (true, false) => forbid(logits, 0, end),
            (false, _) => {}
        }
        if let Some(timestamp) = sampled.iter().rev().copied().find(is_timestamp) {
            // A segment has a nonzero length, so that decoding advances; the next segment may start at its end.
            let earliest = timestamp as usize + usize::from(!last || before_last);
            forbid(logits, first_timestamp, earliest);
        }
        if sampled.is_empty() {
            forbid(logits, 0, first_timestamp);
            let latest = first_timestamp + self.max_initial_timestamp as usize;
            forbid(logits, latest + 1, usize::MAX);
        }
        // If the timestamps together are more probable than any other token, only they are allowed.
        let split = first_timestamp.min(logits.len());
        let (others, timestamps) = logits.split_at(split);
        let best = others.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if log_sum_exp(timestamps) > f64::from(best) {
            forbid(logits, 0, first_timestamp);
        }
    }
}

fn forbid(logits: &mut [f32], first: usize, end: usize) {
    let end = end.min(logits.len());
    if let Some(part) = logits.get_mut(first..end) {
        part.fill(f32::NEG_INFINITY);
    }
}

/// Returns the logarithm of the sum of the exponentials.
pub(super) fn log_sum_exp(logits: &[f32]) -> f64 {
    match gguf_runtime::log_sum_exp(logits) {
        (f32::NEG_INFINITY, _) => f64::NEG_INFINITY,
        (max, log) => f64::from(max) + log,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vocabulary with text tokens 0 to 9, the end-of-text token 10 and timestamps 13 to 22.
    fn vocabulary() -> Vocabulary {
        Vocabulary {
            end: 10,
            start: 11,
            previous: None,
            no_speech: None,
            no_timestamps: 12,
            first_timestamp: 13,
            languages: None,
            suppressed: vec![3, 11],
            suppressed_at_start: vec![0, 10],
        }
    }

    /// Returns the allowed tokens for logits that are equal but for one `favorite`.
    fn allowed(timestamps: bool, sampled: &[u32], favorite: Option<usize>) -> Vec<usize> {
        let vocabulary = vocabulary();
        let rules = LogitRules { vocabulary: &vocabulary, timestamps, max_initial_timestamp: 4 };
        let mut logits = vec![0.0; 23];
        if let Some(favorite) = favorite {
            logits[favorite] = 9.0;
        }
        rules.apply(sampled, &mut logits);
        (0..23).filter(|id| logits[*id] > f32::NEG_INFINITY).collect()
    }

    #[test]
    fn text_without_timestamps() {
        assert_eq!(
            allowed(false, &[], None),
            [1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
        );
        assert_eq!(allowed(false, &[1], None).first(), Some(&0));
        assert!(allowed(false, &[1], None).contains(&10));
    }

    #[test]
    fn text_starts_with_an_early_timestamp() {
        assert_eq!(allowed(true, &[], None), [13, 14, 15, 16, 17]);
    }

    #[test]
    fn first_timestamp_is_followed_by_text_or_end() {
        assert_eq!(allowed(true, &[14], None), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn timestamps_win_by_their_total_probability() {
        // Eight timestamps together are more probable than any single token.
        assert_eq!(allowed(true, &[14, 1], None), (15..23).collect::<Vec<_>>());
        let with_text = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 21, 22];
        assert_eq!(allowed(true, &[14, 1], Some(5)), with_text);
    }

    #[test]
    fn end_of_segment_is_followed_by_start_or_end() {
        assert_eq!(allowed(true, &[14, 1, 18], Some(10)), [10, 18, 19, 20, 21, 22]);
        // Text follows; the next timestamp must be later.
        assert_eq!(allowed(true, &[14, 1, 18, 18], None), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(allowed(true, &[14, 1, 18, 18, 2], None), [19, 20, 21, 22]);
    }

    #[test]
    fn log_sum_exp_of_empty_and_large_logits() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-9);
    }
}
