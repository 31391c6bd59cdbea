//! Sampling of the next token.

mod filter;
mod penalty;

use std::cmp::Ordering;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Sampling options. The values in parentheses disable a step.
///
/// Steps run in the order of llama.cpp: banned ids, penalties, top-k, locally typical, top-p, min-p,
/// temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// Temperature: logits are divided by it; 0 and less is greedy (1).
    pub temperature: f32,
    /// Top-k: number of best tokens to keep (0).
    pub top_k: usize,
    /// Top-p (nucleus): keeps the fewest best tokens whose probabilities sum to it (1).
    pub top_p: f32,
    /// Min-p: minimum probability, relative to the best token (0).
    pub min_p: f32,
    /// Locally typical sampling (arXiv 2202.00666): keeps the fewest tokens of typical surprise whose
    /// probabilities sum to it (1).
    pub typical_p: f32,
    /// Repetition penalty: divides positive logits of recent tokens and multiplies negative ones (1).
    pub repeat_penalty: f32,
    /// Frequency penalty: subtracted from a logit for each recent occurrence (0).
    pub frequency_penalty: f32,
    /// Presence penalty: subtracted from the logits of recent tokens (0).
    pub presence_penalty: f32,
    /// Number of recent tokens for penalties.
    pub repeat_last: usize,
    /// Ids that are never sampled.
    pub banned: Vec<u32>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for SamplingOptions {
    /// Returns the defaults of llama.cpp's command line.
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last: 64,
            banned: Vec::new(),
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Returns options for greedy sampling.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }
}

/// A candidate token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub id: u32,
    pub score: f32,
    pub probability: f32,
}

/// Samples one token per call.
///
/// ```
/// use gguf_runtime::{Sampler, SamplingOptions};
/// let mut sampler = Sampler::new(SamplingOptions::greedy());
/// assert_eq!(sampler.sample(&[0.5, 2.0, -1.0]), Some(1));
/// ```
pub struct Sampler {
    sampling: SamplingOptions,
    chance: ChaCha8Rng,
    last: Vec<u32>,
}

impl Sampler {
    /// Returns a sampler before its first token.
    pub fn new(sampling: SamplingOptions) -> Self {
        let chance = ChaCha8Rng::seed_from_u64(sampling.seed);
        Self { sampling, chance, last: Vec::new() }
    }

    /// Adds a token that was not sampled here, such as one of the prompt, to the recent tokens.
    pub fn accept(&mut self, id: u32) {
        self.last.push(id);
        if self.last.len() > self.sampling.repeat_last {
            self.last.remove(0);
        }
    }

    /// Samples a token from logits; `None` if all tokens are banned or all logits are NaN.
    pub fn sample(&mut self, logits: &[f32]) -> Option<u32> {
        let SamplingOptions { temperature, top_k, top_p, min_p, typical_p, .. } = self.sampling;
        let mut candidates: Vec<Candidate> = (0..)
            .zip(logits)
            .filter(|(id, score)| !score.is_nan() && !self.sampling.banned.contains(id))
            .map(|(id, &score)| Candidate { id, score, probability: 0.0 })
            .collect();
        penalty::apply(&self.sampling, &self.last, &mut candidates);
        let chosen = if temperature <= 0.0 {
            // Among equals the first one wins.
            candidates.iter().rev().max_by(|a, b| a.score.total_cmp(&b.score)).map(|best| best.id)
        } else {
            // Without filters the order does not matter, and sorting a vocabulary takes longest.
            if top_k > 0 || typical_p < 1.0 || top_p < 1.0 || min_p > 0.0 {
                filter::top_k(&mut candidates, top_k);
                filter::typical(&mut candidates, typical_p);
                filter::top_p(&mut candidates, top_p);
                filter::min_p(&mut candidates, min_p);
            }
            candidates.iter_mut().for_each(|candidate| candidate.score /= temperature);
            filter::probabilities(&mut candidates);
            self.draw(&candidates)
        };
        if let Some(id) = chosen {
            self.accept(id);
        }
        chosen
    }

    /// Draws a candidate by its probability.
    fn draw(&mut self, candidates: &[Candidate]) -> Option<u32> {
        // The upper 53 bits are a number from 0 to below 1.
        let chance = (self.chance.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut sum = 0.0;
        for candidate in candidates {
            sum += f64::from(candidate.probability);
            if chance < sum {
                return Some(candidate.id);
            }
        }
        candidates.last().map(|candidate| candidate.id)
    }
}

/// Orders by descending score, then by ascending id.
pub(crate) fn best_first(a: &Candidate, b: &Candidate) -> Ordering {
    b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(sampling: SamplingOptions, logits: &[f32], count: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(sampling);
        (0..count).map(|_| sampler.sample(logits).unwrap()).collect()
    }

    #[test]
    fn sampling_is_reproducible() {
        let logits = [0.0, 1.0, 2.0, 3.0];
        let free =
            SamplingOptions { top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplingOptions::default() };
        let seeded = |seed| choices(SamplingOptions { seed, ..free.clone() }, &logits, 20);
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1), seeded(2));
        assert_eq!(
            seeded(0)[..8],
            [3, 3, 3, 1, 3, 3, 3, 3],
            "the stream of the generator is fixed"
        );
    }

    #[test]
    fn filters_keep_the_best() {
        let logits = [3.0, 2.0, 1.0, 0.0];
        let free =
            SamplingOptions { top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplingOptions::default() };
        let seen = |sampling: SamplingOptions| {
            let mut seen = choices(sampling, &logits, 300);
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        assert_eq!(seen(SamplingOptions { temperature: 2.0, ..free.clone() }), [0, 1, 2, 3]);
        assert_eq!(seen(SamplingOptions { top_k: 2, temperature: 2.0, ..free.clone() }), [0, 1]);
        // The probabilities are 0.64, 0.24, 0.09 and 0.03.
        assert_eq!(seen(SamplingOptions { top_p: 0.7, temperature: 2.0, ..free.clone() }), [0, 1]);
        assert_eq!(
            seen(SamplingOptions { min_p: 0.1, temperature: 2.0, ..free.clone() }),
            [0, 1, 2]
        );
        // The entropy is 0.94; the surprise of the second token, 1.43, is closer to it than 0.44.
        assert_eq!(seen(SamplingOptions { typical_p: 0.2, temperature: 2.0, ..free.clone() }), [1]);
        assert_eq!(seen(SamplingOptions { banned: vec![0, 1], ..free }), [2, 3]);
    }

    #[test]
    fn penalties_reduce_repetition() {
        let greedy = SamplingOptions::greedy();
        let logits = [1.0, 0.9, -1.0];
        let with = |sampling| choices(sampling, &logits, 3);
        assert_eq!(with(greedy.clone()), [0, 0, 0]);
        assert_eq!(with(SamplingOptions { repeat_penalty: 1.5, ..greedy.clone() }), [0, 1, 0]);
        assert_eq!(with(SamplingOptions { presence_penalty: 0.5, ..greedy.clone() }), [0, 1, 0]);
        assert_eq!(with(SamplingOptions { frequency_penalty: 0.06, ..greedy }), [0, 0, 1]);
    }

    #[test]
    fn nothing_is_sampled_from_banned_or_nan() {
        assert_eq!(Sampler::new(SamplingOptions::default()).sample(&[f32::NAN, f32::NAN]), None);
        assert_eq!(Sampler::new(SamplingOptions::greedy()).sample(&[]), None);
    }
}
