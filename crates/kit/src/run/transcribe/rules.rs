//! Which token may follow, as Whisper's authors have it (`decoding.py`).

use super::vocabulary::Vocabulary;

/// What is allowed in a window.
pub(super) struct Rules<'v> {
    pub vocabulary: &'v Vocabulary,
    /// Whether times are wanted.
    pub times: bool,
    /// The last step of time with which a text may begin.
    pub latest_begin: u32,
}

impl Rules<'_> {
    /// Takes the chance from tokens that may not follow those that were chosen.
    pub fn apply(&self, chosen: &[u32], logits: &mut [f32]) {
        let Vocabulary { suppressed, not_first, .. } = self.vocabulary;
        let at_start = if chosen.is_empty() { not_first.as_slice() } else { &[] };
        for id in suppressed.iter().chain(at_start) {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit = f32::NEG_INFINITY;
            }
        }
        if self.times {
            self.apply_times(chosen, logits);
        }
    }

    /// Times come in pairs, the end of a part and the beginning of the next one; a text begins with
    /// one; they do not go back.
    fn apply_times(&self, chosen: &[u32], logits: &mut [f32]) {
        let Vocabulary { end, no_timestamps, first_time, .. } = *self.vocabulary;
        let (end, first_time) = (end as usize, first_time as usize);
        forbid(logits, no_timestamps as usize, no_timestamps as usize + 1);
        let is_time = |id: &u32| *id as usize >= first_time;
        let last = chosen.last().is_some_and(is_time);
        let before_last = chosen.len() < 2 || chosen.iter().rev().nth(1).is_some_and(is_time);
        match (last, before_last) {
            (true, true) => forbid(logits, first_time, usize::MAX),
            (true, false) => forbid(logits, 0, end),
            (false, _) => {}
        }
        if let Some(time) = chosen.iter().rev().copied().find(is_time) {
            // A part takes some time, or it might never end; the next one may begin at once.
            let earliest = time as usize + usize::from(!last || before_last);
            forbid(logits, first_time, earliest);
        }
        if chosen.is_empty() {
            forbid(logits, 0, first_time);
            forbid(logits, first_time + self.latest_begin as usize + 1, usize::MAX);
        }
        // Where it is more probable that there is a time, whichever, than any other token, there is one.
        let split = first_time.min(logits.len());
        let (others, times) = logits.split_at(split);
        let best = others.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if log_sum(times) > f64::from(best) {
            forbid(logits, 0, first_time);
        }
    }
}

fn forbid(logits: &mut [f32], first: usize, end: usize) {
    let end = end.min(logits.len());
    if let Some(part) = logits.get_mut(first..end) {
        part.fill(f32::NEG_INFINITY);
    }
}

/// The logarithm of the sum of the exponentials.
pub(super) fn log_sum(logits: &[f32]) -> f64 {
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    if most == f64::NEG_INFINITY {
        return most;
    }
    logits.iter().map(|logit| (f64::from(*logit) - most).exp()).sum::<f64>().ln() + most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts are 0 to 9, 10 ends one, times are 13 to 22.
    fn vocabulary() -> Vocabulary {
        Vocabulary {
            end: 10,
            start: 11,
            previous: None,
            no_speech: None,
            no_timestamps: 12,
            first_time: 13,
            tongues: None,
            suppressed: vec![3, 11],
            not_first: vec![0, 10],
        }
    }

    /// What may follow, where no token is more probable than another, and with one that is.
    fn allowed(times: bool, chosen: &[u32], favourite: Option<usize>) -> Vec<usize> {
        let vocabulary = vocabulary();
        let rules = Rules { vocabulary: &vocabulary, times, latest_begin: 4 };
        let mut logits = vec![0.0; 23];
        if let Some(favourite) = favourite {
            logits[favourite] = 9.0;
        }
        rules.apply(chosen, &mut logits);
        (0..23).filter(|id| logits[*id] > f32::NEG_INFINITY).collect()
    }

    #[test]
    fn text_alone() {
        assert_eq!(
            allowed(false, &[], None),
            [1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
        );
        assert_eq!(allowed(false, &[1], None).first(), Some(&0));
        assert!(allowed(false, &[1], None).contains(&10));
    }

    #[test]
    fn a_text_begins_with_an_early_time() {
        assert_eq!(allowed(true, &[], None), [13, 14, 15, 16, 17]);
    }

    #[test]
    fn after_the_first_time_comes_text_or_the_end() {
        assert_eq!(allowed(true, &[14], None), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn times_win_together() {
        // Eight times are more probable than any single token.
        assert_eq!(allowed(true, &[14, 1], None), (15..23).collect::<Vec<_>>());
        let with_text = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 21, 22];
        assert_eq!(allowed(true, &[14, 1], Some(5)), with_text);
    }

    #[test]
    fn after_the_end_of_a_part_comes_the_next_part_or_the_end() {
        assert_eq!(allowed(true, &[14, 1, 18], Some(10)), [10, 18, 19, 20, 21, 22]);
        // And then text, which no time may follow that is not later.
        assert_eq!(allowed(true, &[14, 1, 18, 18], None), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(allowed(true, &[14, 1, 18, 18, 2], None), [19, 20, 21, 22]);
    }

    #[test]
    fn sums_of_nothing() {
        assert_eq!(log_sum(&[]), f64::NEG_INFINITY);
        assert!((log_sum(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-9);
    }
}
