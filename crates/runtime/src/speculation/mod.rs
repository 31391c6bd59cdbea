//! Speculative decoding: sources draft tokens that are likely to follow, and one run of the target model checks all of
//! them.
//!
//! Drafts do not change the text. The caller samples from the logits of the target model after each drafted token, and
//! continues while it samples the drafted tokens. So the sampler sees the logits that it would see without drafts, and
//! draws once per token.
//!
//! [`Speculation`] drafts a further token if the tokens that it is expected to add would take longer without it. It
//! measures how often drafted tokens are right, and how long the sources and the target model take.

mod acceptance;
mod block_draft;
mod draft_model;
mod feature_draft;
mod pending_features;
mod prompt_lookup;
mod run_costs;
mod target_vocabulary;

use std::time::{Duration, Instant};

use gguf::Error;
use gguf_store::Progress;

use crate::context::Context;
use crate::executor::Executor;
use crate::softmax::log_sum_exp;
use crate::value::Value;
use acceptance::Acceptance;
use run_costs::RunCosts;

pub use block_draft::{Block, BlockDraft};
pub use draft_model::DraftModel;
pub use feature_draft::FeatureDraft;
pub use prompt_lookup::PromptLookup;
pub use target_vocabulary::TargetVocabulary;

/// Default of the maximum number of drafted tokens.
pub const MAX_DRAFT: usize = 15;

/// Source of drafted tokens.
pub trait DraftSource {
    /// Returns the expected time of a token before times are measured, as a share of that of a run of the target model
    /// without drafted tokens.
    fn expected_cost(&self) -> f64 {
        0.0
    }

    /// Whether the first token of a draft takes all the time: the source computes those after it, too.
    fn drafts_blocks(&self) -> bool {
        false
    }

    /// Returns the number of tokens of `text` that the next draft reads first.
    fn unread(&self, _text: &[u32]) -> usize {
        0
    }

    /// Returns the token that most likely follows `text` and the drafted tokens; `None` if the source does not know one.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the caller cancels. After any other error the source is not asked again.
    fn next(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error>;

    /// Reads the features that the target model computed for tokens of the text from `position` on, a row for each of
    /// `ids`. What it read for this position and later ones before is obsolete.
    ///
    /// # Errors
    /// As [`DraftSource::next`].
    fn read(
        &mut self,
        _position: usize,
        _ids: &[u32],
        _features: &Value,
        _progress: &dyn Progress,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// A drafted token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DraftToken {
    /// Id in the vocabulary of the target model.
    pub id: u32,
    /// Probability, as the source estimates it, that the token is right.
    pub confidence: f64,
}

impl DraftToken {
    /// Returns the most likely token of these logits, with its place among them as id.
    ///
    /// # Errors
    /// `weights-unusable` if the logits contain NaN or infinity.
    fn most_likely(logits: &[f32]) -> Result<Self, Error> {
        let (greatest, log) = log_sum_exp(logits);
        if !(greatest.is_finite() && log.is_finite()) {
            let what = "the logits of the draft model contain NaN or infinity";
            return Err(Error::weights("output", what));
        }
        let id = logits.iter().position(|logit| *logit == greatest).unwrap_or(0) as u32;
        Ok(Self { id, confidence: (-log).exp() })
    }
}

/// Returns the time of a token of a draft model as a share of that of its target model, by the bytes of their weights.
fn share_of_weights(draft: &Executor, target: &Executor) -> f64 {
    draft.matrix_bytes() as f64 / (target.matrix_bytes() as f64).max(1.0)
}

/// Whether a context that begins at position `start` of a text has room for its tokens and their draft, and knows their ids.
fn can_read(context: &Context, start: usize, text: &[u32], draft: &[u32]) -> bool {
    let room = start + context.len(0) + context.room(0);
    let known = context.executor().vocabulary_len().unwrap_or(0);
    let are_known = text.iter().chain(draft).all(|id| (*id as usize) < known);
    text.len() + draft.len() <= room && are_known
}

/// Drafts tokens of a text from one or more sources, as many as make generation fastest, which may be none.
pub struct Speculation {
    sources: Vec<Source>,
    max: usize,
    text: Vec<u32>,
    /// Tokens of the last draft: source and confidence.
    draft: Vec<(usize, f64)>,
    draft_time: Duration,
    costs: RunCosts,
    /// Seconds of all runs and drafts.
    seconds: f64,
    faults: Vec<Error>,
}

/// A source, what is known of it, and whether it is asked.
struct Source {
    source: Box<dyn DraftSource>,
    is_asked: bool,
    acceptance: Acceptance,
    /// Tokens that the source returned.
    tokens: usize,
    /// Average time of a token, or of a block, in seconds; 0 before it is measured.
    seconds: f64,
    /// Seconds that its tokens saved, less those that they took.
    balance: f64,
}

/// Tokens of a source before their time is measured: the first runs of a draft model repack weights, and take longer.
const WARM_UP: usize = 8;

/// Further tokens of the text that a source reads in the time of a drafted token.
const READ_AT_ONCE: usize = 8;

/// Share of the last measurement in a moving average of times.
const WEIGHT: f64 = 0.3;

/// Share of the time of a run below which a token of a source costs nothing.
const NOTHING: f64 = 0.01;

/// Factor of the time of the first token of a source, which loads weights and allocates memory.
const FIRST: f64 = 2.0;

/// Time that a source may lose: so many runs without drafts, and a share of the time of all runs.
const LOST_RUNS: f64 = 3.0;
const LOST_SHARE: f64 = 0.01;

impl Speculation {
    /// Returns a speculation without sources, with drafts of at most `max` tokens.
    pub fn new(max: usize) -> Self {
        Self {
            sources: Vec::new(),
            max,
            text: Vec::new(),
            draft: Vec::new(),
            draft_time: Duration::ZERO,
            costs: RunCosts::new(max),
            seconds: 0.0,
            faults: Vec::new(),
        }
    }

    /// Adds a source, which is asked where the sources before it do not help.
    pub fn with(mut self, source: Box<dyn DraftSource>) -> Self {
        self.sources.push(Source {
            source,
            is_asked: true,
            acceptance: Acceptance::default(),
            tokens: 0,
            seconds: 0.0,
            balance: 0.0,
        });
        self
    }

    /// Begins another text. What was measured remains.
    pub fn begin(&mut self, prompt: &[u32]) {
        self.text = prompt.to_vec();
        self.draft.clear();
    }

    /// Appends a token to the text.
    pub fn push(&mut self, id: u32) {
        self.text.push(id);
    }

    /// Returns tokens that are likely to follow the text, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn draft(&mut self, limit: usize, progress: &dyn Progress) -> Result<Vec<u32>, Error> {
        let started = Instant::now();
        self.draft.clear();
        let limit = limit.min(self.max);
        let (mut ids, mut reach) = (Vec::new(), 1.0);
        while ids.len() < limit && !self.costs.need_plain_run() {
            let Some((id, probability)) = self.next(&ids, reach, limit, progress)? else { break };
            ids.push(id);
            reach *= probability;
        }
        self.draft_time = started.elapsed();
        Ok(ids)
    }

    /// Returns the next token of a draft that is right with the probability `reach`, and the probability of the token.
    fn next(
        &mut self,
        draft: &[u32],
        reach: f64,
        limit: usize,
        progress: &dyn Progress,
    ) -> Result<Option<(u32, f64)>, Error> {
        for number in 0..self.sources.len() {
            let expects_gain = self.pays(number, draft.len(), limit, reach, None);
            let source = &mut self.sources[number];
            let is_free = source.cost(draft.len(), &self.costs) < NOTHING * self.costs.run(0);
            let tries =
                expects_gain || is_free || draft.is_empty() && source.acceptance.is_tried_again();
            let tries = tries && source.is_asked;
            if !tries || !is_free && !self.is_affordable(number, draft.len()) {
                continue;
            }
            let token = self.sources[number].token(&self.text, draft, progress);
            let token = self.without_fault(number, token)?.flatten();
            let Some(token) = token else { continue };
            let acceptance = &mut self.sources[number].acceptance;
            let probability = acceptance.probability(token.confidence);
            acceptance.expect(probability);
            if self.pays(number, draft.len(), limit, reach, Some(probability)) {
                self.draft.push((number, token.confidence));
                return Ok(Some((token.id, probability)));
            }
            self.sources[number].acceptance.forget(token.confidence);
        }
        Ok(None)
    }

    /// Whether a source may be asked for the token after the first `len` of a draft although it may not help: it has saved
    /// enough time, or lost little.
    fn is_affordable(&self, number: usize, len: usize) -> bool {
        let source = &self.sources[number];
        let reading = source.source.unread(&self.text) as f64 / READ_AT_ONCE as f64;
        let first = if source.tokens == 0 { FIRST } else { 1.0 };
        let cost = source.cost(len, &self.costs) * (1.0 + reading) * first;
        let may_lose = LOST_RUNS * self.costs.run(0) + LOST_SHARE * self.seconds;
        source.balance - cost >= -may_lose
    }

    /// Whether some number of tokens after the first `len` pays, given the probability `reach` that these are right. The
    /// source returned the next token already if its probability is known.
    fn pays(
        &self,
        source: usize,
        len: usize,
        limit: usize,
        reach: f64,
        known: Option<f64>,
    ) -> bool {
        let source = &self.sources[source];
        let (mut probability, mut tokens, mut seconds) = (reach, 0.0, 0.0);
        (len + 1..=limit).any(|len_after| {
            match known.filter(|_| len_after == len + 1) {
                Some(known) => probability *= known,
                None => {
                    probability *= source.acceptance.average();
                    seconds += source.cost(len_after - 1, &self.costs);
                }
            }
            tokens += probability;
            let more = self.costs.run(len_after) - self.costs.run(len);
            tokens * self.costs.seconds_per_token() > seconds + more
        })
    }

    /// Passes the features that the target model computed for tokens of the text to the sources that read them.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn read(
        &mut self,
        position: usize,
        ids: &[u32],
        features: &Value,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        for number in 0..self.sources.len() {
            if self.sources[number].is_asked {
                let read = self.sources[number].source.read(position, ids, features, progress);
                self.without_fault(number, read)?;
            }
        }
        Ok(())
    }

    /// Returns the result of a source; `None` after an error, for which the source is not asked again.
    fn without_fault<T>(
        &mut self,
        number: usize,
        result: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match result {
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(fault) => {
                self.sources[number].is_asked = false;
                self.faults.push(fault);
                Ok(None)
            }
            Ok(result) => Ok(Some(result)),
        }
    }

    /// Reports that a run checked the draft in a time, and that the first `accepted` drafted tokens were right.
    pub fn record(&mut self, accepted: usize, run: Duration) {
        for (number, (source, confidence)) in self.draft.iter().enumerate().take(accepted + 1) {
            self.sources[*source].acceptance.record(*confidence, number < accepted);
        }
        let longer = (run.as_secs_f64() - self.costs.run(0)) / self.draft.len().max(1) as f64;
        for (number, (source, _)) in self.draft.iter().enumerate() {
            let saved = if number < accepted { self.costs.run(0) } else { 0.0 };
            self.sources[*source].balance += saved - longer;
        }
        self.costs.record(self.draft.len(), accepted, run, self.draft_time);
        self.seconds += (run + self.draft_time).as_secs_f64();
    }

    /// Returns the errors for which sources are not asked any more, once.
    pub fn take_faults(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.faults)
    }
}

impl Source {
    /// Returns the seconds of the token after the first `len` of a draft: the measured ones, or those to expect.
    fn cost(&self, len: usize, costs: &RunCosts) -> f64 {
        let is_computed = len > 0 && self.source.drafts_blocks();
        match self.seconds {
            _ if is_computed => 0.0,
            0.0 => self.source.expected_cost() * costs.run(0),
            measured => measured,
        }
    }

    /// Returns the next token, and measures the time.
    fn token(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        // A source that was not asked for a while has more to read.
        let is_usual = self.source.unread(text) <= READ_AT_ONCE
            && (draft.is_empty() || !self.source.drafts_blocks());
        let started = Instant::now();
        let token = self.source.next(text, draft, progress)?;
        let seconds = started.elapsed().as_secs_f64();
        self.balance -= seconds;
        self.tokens += usize::from(token.is_some());
        if self.tokens > WARM_UP && is_usual {
            let before = if self.seconds == 0.0 { seconds } else { self.seconds };
            self.seconds = before + WEIGHT * (seconds - before);
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Drafts token 7 with a confidence, and counts how often it is asked. The last number is its expected cost.
    struct Sevens(f64, Arc<AtomicUsize>, f64);

    impl DraftSource for Sevens {
        fn expected_cost(&self) -> f64 {
            self.2
        }

        fn next(
            &mut self,
            _: &[u32],
            _: &[u32],
            _: &dyn Progress,
        ) -> Result<Option<DraftToken>, Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(Some(DraftToken { id: 7, confidence: self.0 }))
        }
    }

    fn millis(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// Returns a speculation after runs without drafts of 100 ms.
    fn started(confidence: f64, asked: &Arc<AtomicUsize>) -> Speculation {
        let mut speculation =
            Speculation::new(4).with(Box::new(Sevens(confidence, asked.clone(), 0.0)));
        speculation.begin(&[1, 2, 3]);
        for _ in 0..run_costs::WARM_UP {
            assert_eq!(speculation.draft(4, &()).unwrap(), [0; 0]);
            speculation.record(0, millis(100));
        }
        speculation
    }

    #[test]
    fn drafts_are_as_long_as_they_pay() {
        let asked = Arc::default();
        let mut speculation = started(0.95, &asked);
        assert_eq!(speculation.draft(3, &()).unwrap(), [7; 3]);
        assert_eq!(speculation.draft(9, &()).unwrap(), [7; 4], "the maximum");
        assert_eq!(speculation.draft(0, &()).unwrap(), [0; 0]);
        // Each further token costs more than a run.
        for len in [1, 2, 3, 4] {
            speculation.costs.record(len, len, millis(100 + 130 * len as u64), Duration::ZERO);
        }
        assert_eq!(speculation.draft(4, &()).unwrap(), [0; 0]);
    }

    #[test]
    fn drafts_that_are_wrong_end_and_are_tried_again() {
        let asked = Arc::default();
        let mut speculation = started(0.9, &asked);
        let round = |speculation: &mut Speculation| {
            let len = speculation.draft(4, &()).unwrap().len();
            speculation.record(0, millis(100 + 30 * len as u64));
            len
        };
        let drafted: usize = (0..20).map(|_| round(&mut speculation)).sum();
        assert!((1..40).contains(&drafted), "{drafted}");
        let drafted: usize = (0..200).map(|_| round(&mut speculation)).sum();
        assert!((1..40).contains(&drafted), "{drafted}");
    }

    #[test]
    fn expensive_sources_are_asked_less_and_less() {
        let asked = Arc::default();
        let mut speculation = started(0.1, &asked);
        speculation.sources[0].seconds = 0.05;
        speculation.sources[0].tokens = WARM_UP;
        let mut ask = |rounds: usize| {
            let before = asked.load(Ordering::Relaxed);
            for _ in 0..rounds {
                speculation.sources[0].seconds = 0.05;
                assert_eq!(speculation.draft(4, &()).unwrap(), [0; 0]);
                speculation.record(0, millis(100));
            }
            asked.load(Ordering::Relaxed) - before
        };
        assert!(ask(100) < 20);
        assert!(ask(1000) <= 3);
    }

    #[test]
    fn sources_that_do_not_help_lose_little_time() {
        let asked = Arc::<AtomicUsize>::default();
        let mut speculation =
            Speculation::new(4).with(Box::new(Sevens(0.9, Arc::clone(&asked), 0.2)));
        let mut lost = 0.0;
        for _ in 0..500 {
            let before = asked.load(Ordering::Relaxed);
            let len = speculation.draft(4, &()).unwrap().len();
            speculation.sources[0].seconds = 0.02;
            // A token takes a fifth of a run, and makes the run longer by a tenth.
            let drafting = 0.02 * (asked.load(Ordering::Relaxed) - before) as f64;
            speculation.sources[0].balance -= drafting;
            speculation.record(0, millis(100 + 10 * len as u64));
            lost += drafting + 0.01 * len as f64;
        }
        let asked = asked.load(Ordering::Relaxed);
        // Three runs of 100 ms, a hundredth of 500 of them, and a draft.
        assert!(asked > 5 && lost < 0.3 + 0.5 + 0.15, "{asked}, {lost} s");
    }

    #[test]
    fn expensive_sources_are_not_asked_before_they_are_measured() {
        let asked = Arc::<AtomicUsize>::default();
        let mut speculation =
            Speculation::new(4).with(Box::new(Sevens(0.5, Arc::clone(&asked), 0.9)));
        for _ in 0..run_costs::WARM_UP + 20 {
            assert_eq!(speculation.draft(4, &()).unwrap(), [0; 0]);
            speculation.record(0, millis(100));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sources_with_faults_are_dropped() {
        struct Broken;
        impl DraftSource for Broken {
            fn next(
                &mut self,
                _: &[u32],
                _: &[u32],
                _: &dyn Progress,
            ) -> Result<Option<DraftToken>, Error> {
                Err(Error::weights("output", "the output contains NaN"))
            }
        }
        let asked = Arc::default();
        let mut speculation = Speculation::new(2).with(Box::new(Broken)).with(Box::new(Sevens(
            0.9,
            Arc::clone(&asked),
            0.0,
        )));
        for _ in 0..run_costs::WARM_UP {
            speculation.record(0, millis(100));
        }
        assert_eq!(speculation.draft(2, &()).unwrap(), [7, 7]);
        let faults = speculation.take_faults();
        assert_eq!(faults.iter().map(Error::code).collect::<Vec<_>>(), ["weights-unusable"]);
        assert_eq!(speculation.draft(2, &()).unwrap(), [7, 7]);
        assert!(speculation.take_faults().is_empty());
    }

    #[test]
    fn the_time_without_drafts_is_measured_again() {
        let asked = Arc::default();
        let mut speculation = started(0.95, &asked);
        let mut without = 0;
        for _ in 0..=run_costs::INTERVAL {
            let len = speculation.draft(4, &()).unwrap().len();
            without += usize::from(len == 0);
            speculation.record(len, millis(110));
        }
        assert_eq!(without, 1);
    }
}
