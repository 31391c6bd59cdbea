//! Speculative decoding without a second model: tokens that followed the same tokens before are drafted (prompt lookup),
//! and a single run checks all of them.
//!
//! Source: Apoorv Saxena, *Prompt Lookup Decoding*, 2023.

use std::collections::HashMap;
use std::time::Duration;

/// Lengths of the sequences of tokens that are looked up, the longest first.
const LENGTHS: [usize; 2] = [3, 2];

/// Maximum number of drafted tokens.
pub const MAX_DRAFT: usize = 8;

/// Share of the last measurement in a moving average.
const WEIGHT: f64 = 0.3;

/// Share of earlier drafts in the acceptance rate that a further draft leaves.
const DECAY: f64 = 0.9;

/// Runs without drafted tokens before the first draft: the first ones repack weights, and take longer.
const WARM_UP: usize = 8;

/// Runs after which the time of one without drafted tokens is measured again.
const INTERVAL: usize = 16;

/// Accepted and refused tokens that a new rate starts with.
const PRIOR: (f64, f64) = (1.0, 1.0);

/// Drafts tokens from the text so far. Learns how many of them are accepted and what a run costs, and drafts as many as
/// make generation fastest, which may be none.
#[derive(Clone, Debug, Default)]
pub struct PromptLookup {
    ids: Vec<u32>,
    /// Position after the last occurrence of each sequence, except the one at the end.
    after: HashMap<Vec<u32>, usize>,
    accepted: f64,
    refused: f64,
    /// Seconds of a run with each number of drafted tokens; 0 if it was not measured.
    seconds: [f64; MAX_DRAFT + 1],
    /// Runs since the last one without drafted tokens.
    since_plain: usize,
    /// Runs without drafted tokens.
    plain: usize,
}

impl PromptLookup {
    /// Adds a token of the prompt, or a generated one.
    pub fn push(&mut self, id: u32) {
        self.ids.push(id);
        let end = self.ids.len() - 1;
        for len in LENGTHS.into_iter().filter(|len| *len <= end) {
            self.after.insert(self.ids[end - len..end].to_vec(), end);
        }
    }

    /// Returns tokens that are likely to follow, at most `limit`.
    pub fn draft(&mut self, limit: usize) -> Vec<u32> {
        let tails = LENGTHS.into_iter().filter_map(|len| self.ids.len().checked_sub(len));
        let Some(&start) = tails.into_iter().find_map(|start| self.after.get(&self.ids[start..]))
        else {
            return Vec::new();
        };
        let len = self.best_len().min(limit).min(self.ids.len() - start);
        if len == 0 {
            // What was refused is forgotten, so that drafts are tried again.
            self.accepted *= DECAY;
            self.refused *= DECAY;
        }
        self.ids[start..start + len].to_vec()
    }

    /// Reports a run that checked a number of drafted tokens, of which the first `accepted` were right.
    pub fn record(&mut self, drafted: usize, accepted: usize, time: Duration) {
        let Some(seconds) = self.seconds.get_mut(drafted) else { return };
        let time = time.as_secs_f64();
        if drafted == 0 {
            (self.plain, self.since_plain) = (self.plain + 1, 0);
            if self.plain < WARM_UP {
                return;
            }
        } else {
            self.since_plain += 1;
        }
        *seconds = if *seconds == 0.0 { time } else { *seconds + WEIGHT * (time - *seconds) };
        if drafted > 0 {
            self.accepted = self.accepted * DECAY + accepted as f64;
            self.refused = self.refused * DECAY + f64::from(u8::from(accepted < drafted));
        }
    }

    /// Returns the number of drafted tokens with most tokens per second.
    fn best_len(&self) -> usize {
        let alone = self.seconds[0];
        if alone == 0.0 || self.since_plain >= INTERVAL {
            return 0;
        }
        let (accepted, refused) = (self.accepted + PRIOR.0, self.refused + PRIOR.1);
        let rate = accepted / (accepted + refused);
        let (mut best, mut best_speed, mut tokens, mut probability) = (0, 1.0 / alone, 1.0, 1.0);
        let mut longest = alone;
        for (len, seconds) in self.seconds.iter().enumerate().skip(1) {
            probability *= rate;
            tokens += probability;
            // A run that was not measured costs a tenth more than the one before.
            longest = if *seconds > 0.0 { *seconds } else { longest + alone / 10.0 };
            if tokens / longest > best_speed {
                (best, best_speed) = (len, tokens / longest);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ids: &[u32]) -> PromptLookup {
        let mut lookup = PromptLookup::default();
        ids.iter().for_each(|id| lookup.push(*id));
        (0..WARM_UP).for_each(|_| lookup.record(0, 0, Duration::from_millis(10)));
        lookup
    }

    #[test]
    fn tokens_after_the_same_tokens_are_drafted() {
        assert_eq!(after(&[1, 2, 3, 4, 5, 1, 2]).draft(3), [3, 4]);
        // The last occurrence of the longest sequence.
        assert_eq!(after(&[1, 2, 3, 9, 8, 2, 3, 7, 6, 1, 2, 3]).draft(2), [9, 8]);
        assert_eq!(after(&[2, 3, 9, 4, 2, 3, 7, 4, 2, 3]).draft(1), [7]);
        assert_eq!(after(&[1, 2, 3]).draft(8), [0; 0]);
        assert_eq!(after(&[]).draft(8), [0; 0]);
        // A sequence may continue into the end itself.
        assert_eq!(after(&[5, 5, 5]).draft(8), [5]);
    }

    #[test]
    fn drafts_end_where_they_do_not_pay() {
        let mut lookup = after(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]);
        assert_eq!(lookup.draft(MAX_DRAFT), [3, 4]);
        for _ in 0..20 {
            lookup.record(2, 0, Duration::from_millis(13));
            lookup.record(0, 0, Duration::from_millis(10));
        }
        assert_eq!(lookup.draft(MAX_DRAFT), [0; 0]);
        // They are tried again.
        let tried = (0..200).any(|_| !lookup.draft(MAX_DRAFT).is_empty());
        assert!(tried);
        // A run that takes twice as long needs more accepted tokens.
        let mut slow = after(&[1, 2, 3, 4, 1, 2]);
        for len in 1..=MAX_DRAFT {
            slow.record(len, len, Duration::from_millis(10 + 11 * len as u64));
        }
        assert_eq!(slow.draft(MAX_DRAFT), [0; 0]);
        // The time without drafted tokens is measured now and then.
        let mut right = after(&[1, 2, 3, 4, 1, 2]);
        (0..INTERVAL).for_each(|_| right.record(2, 2, Duration::from_millis(11)));
        assert_eq!(right.draft(MAX_DRAFT), [0; 0]);
        right.record(0, 0, Duration::from_millis(10));
        assert!(!right.draft(MAX_DRAFT).is_empty());
    }
}
