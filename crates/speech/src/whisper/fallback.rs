//! Temperature fallback: which attempt at decoding a window is used.

use super::decode::Decoded;

/// Temperatures of the attempts.
pub(super) const TEMPERATURES: [f32; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// A text with a greater compression ratio is repetitive.
const COMPRESSION_RATIO_THRESHOLD: f64 = 2.4;
/// A text with a greater compression ratio repeats the same words to its end. It can be probable, as beam search finds it.
const LOOP_COMPRESSION_RATIO: f64 = 2.0 * COMPRESSION_RATIO_THRESHOLD;
/// A text with a lower mean log-probability is unreliable.
const LOGPROB_THRESHOLD: f64 = -1.0;
/// A window with a greater no-speech probability is silent, unless its text is reliable.
const NO_SPEECH_THRESHOLD: f64 = 0.6;

/// Attempts at one window, in the order of temperatures.
#[derive(Default)]
pub(super) struct Attempts(Vec<Decoded>);

/// The attempt that is used.
pub(super) struct Choice {
    pub decoded: Decoded,
    /// Whether its text passes the thresholds.
    pub passes: bool,
}

impl Attempts {
    /// Adds an attempt. Returns whether a further one may improve the result: the attempt fails, and is not silent. A
    /// window whose earlier text was reliable is not silent because a later attempt failed.
    pub fn add(&mut self, decoded: Decoded) -> bool {
        let passes = passes(&decoded);
        self.0.push(decoded);
        !passes && !self.0.iter().all(|decoded| is_silent(decoded) && !is_loop(decoded))
    }

    /// Returns the attempt that passes the thresholds. If none does, the one with the highest mean log-probability,
    /// among the texts that are not repetitive if there are any, and among those that are not silent if there are any.
    pub fn choose(self) -> Choice {
        let order = |decoded: &Decoded| (!is_silent(decoded), !is_repetitive(decoded));
        let best = self.0.into_iter().reduce(|best, next| {
            let better = passes(&next)
                || order(&next)
                    .cmp(&order(&best))
                    .then(next.avg_logprob.total_cmp(&best.avg_logprob))
                    .is_gt();
            if better { next } else { best }
        });
        let decoded = best.unwrap_or_default();
        Choice { passes: passes(&decoded), decoded }
    }
}

/// Whether a window has no speech, so that its text is dropped.
pub(super) fn is_silent(decoded: &Decoded) -> bool {
    decoded.no_speech_prob > NO_SPEECH_THRESHOLD
        && (decoded.avg_logprob <= LOGPROB_THRESHOLD || is_loop(decoded))
}

fn is_loop(decoded: &Decoded) -> bool {
    decoded.compression_ratio > LOOP_COMPRESSION_RATIO
}

fn is_repetitive(decoded: &Decoded) -> bool {
    decoded.compression_ratio > COMPRESSION_RATIO_THRESHOLD
}

fn passes(decoded: &Decoded) -> bool {
    !is_repetitive(decoded) && decoded.avg_logprob >= LOGPROB_THRESHOLD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds attempts of mean log-probability, compression ratio and no-speech probability until no further one is
    /// needed; returns their number, and the index and success of the choice.
    fn run(attempts: &[(f64, f64, f64)]) -> (usize, usize, bool) {
        let mut all = Attempts::default();
        let mut count = 0;
        for (temperature, &(avg_logprob, compression_ratio, no_speech_prob)) in
            TEMPERATURES.into_iter().zip(attempts)
        {
            count += 1;
            let numbers = Decoded {
                temperature,
                avg_logprob,
                compression_ratio,
                no_speech_prob,
                ..Decoded::default()
            };
            if !all.add(numbers) {
                break;
            }
        }
        let Choice { decoded, passes } = all.choose();
        let index = TEMPERATURES.iter().position(|t| *t == decoded.temperature).unwrap();
        (count, index, passes)
    }

    #[test]
    fn first_passing_attempt_is_used() {
        assert_eq!(run(&[(-0.3, 1.5, 0.1), (-0.1, 1.5, 0.1)]), (1, 0, true));
        assert_eq!(run(&[(-0.3, 3.0, 0.1), (-0.9, 1.5, 0.1), (-0.1, 1.0, 0.1)]), (2, 1, true));
    }

    #[test]
    fn silence_ends_the_attempts() {
        assert_eq!(run(&[(-1.5, 1.0, 0.9), (-0.1, 1.0, 0.9)]), (1, 0, false));
    }

    /// The last attempt is the worst one, and would count as silent.
    #[test]
    fn the_best_of_failed_attempts_is_used() {
        let failed = [
            (-1.3, 1.5, 0.1),
            (-1.1, 1.4, 0.1),
            (-0.2, 9.0, 0.1),
            (-1.7, 1.0, 0.1),
            (-2.0, 1.0, 0.1),
            (-4.0, 1.0, 0.1),
        ];
        assert_eq!(run(&failed), (6, 1, false));
        // All are repetitive.
        assert_eq!(run(&[(-0.5, 3.0, 0.1), (-0.2, 9.0, 0.1), (-0.6, 2.5, 0.1)]), (3, 1, false));
    }

    #[test]
    fn a_loop_is_no_speech() {
        // White noise: beam search finds a probable loop, and the other attempts are improbable.
        let noise = [
            (-0.2, 11.3, 0.99),
            (-1.5, 1.4, 0.99),
            (-1.6, 1.4, 0.99),
            (-1.8, 1.4, 0.99),
            (-2.0, 1.4, 0.99),
            (-3.0, 1.4, 0.99),
        ];
        assert_eq!(run(&noise), (6, 1, false));
        let [loops, improbable] =
            [(-0.2, 11.3), (-1.5, 1.4)].map(|(avg_logprob, compression_ratio)| Decoded {
                avg_logprob,
                compression_ratio,
                no_speech_prob: 0.99,
                ..Decoded::default()
            });
        assert!(is_silent(&loops) && is_silent(&improbable));
        // Speech that becomes a loop is decoded again.
        assert_eq!(run(&[(-0.2, 11.3, 0.7), (-0.4, 1.6, 0.7)]), (2, 1, true));
        assert!(!is_silent(&Decoded { no_speech_prob: 0.1, ..loops }));
    }

    #[test]
    fn a_reliable_text_is_not_dropped_for_a_later_attempt() {
        let failed = [(-0.4, 2.6, 0.7), (-1.8, 1.5, 0.7), (-1.2, 1.5, 0.7)];
        assert_eq!(run(&failed), (3, 0, false));
    }

    #[test]
    fn no_attempt_gives_an_empty_text() {
        let Choice { decoded, passes } = Attempts::default().choose();
        assert!(decoded.ids.is_empty() && passes);
    }
}
