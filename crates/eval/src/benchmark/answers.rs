//! Evaluation of a model on benchmark questions.

use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, ContextOptions, Executor, Token};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{batch_ranges, require_logits};
use crate::scores::Scores;
use crate::{RunOptions, Texts};

/// Result of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// Number of the question in its file, from 1.
    pub number: usize,
    /// Mean log-probability of the scored tokens of each answer.
    pub scores: Vec<f64>,
    /// Index of the answer with the highest score; the first of equal ones.
    pub picked: usize,
    /// Whether the picked answer is right.
    pub right: bool,
    /// Probability of guessing a right answer.
    pub chance: f64,
}

/// Results of a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// Results of the questions, in order.
    pub questions: Vec<Answered>,
}

impl Answers {
    /// Returns the number of right answers.
    pub fn right(&self) -> usize {
        self.questions.iter().filter(|question| question.right).count()
    }

    /// Returns the accuracy.
    pub fn share(&self) -> f64 {
        self.right() as f64 / self.questions.len().max(1) as f64
    }

    /// Returns the standard error of the accuracy; 0 for fewer than two questions.
    pub fn error(&self) -> f64 {
        let (share, count) = (self.share(), self.questions.len() as f64);
        if count < 2.0 { 0.0 } else { (share * (1.0 - share) / (count - 1.0)).sqrt() }
    }

    /// Returns the 95 % confidence interval of the accuracy (Wilson score interval).
    pub fn interval(&self) -> (f64, f64) {
        // Quantile of the normal distribution for 95 %.
        const QUANTILE: f64 = 1.959_963_984_54;
        let (share, count) = (self.share(), self.questions.len().max(1) as f64);
        let z = QUANTILE * QUANTILE / count;
        let half = (z * share * (1.0 - share) + z * z / 4.0).sqrt();
        ((share + z / 2.0 - half) / (1.0 + z), (share + z / 2.0 + half) / (1.0 + z))
    }

    /// Returns the accuracy of guessing.
    pub fn chance(&self) -> f64 {
        let sum: f64 = self.questions.iter().map(|question| question.chance).sum();
        sum / self.questions.len().max(1) as f64
    }
}

/// Maximum size of a group of questions, in batches.
const MAX_GROUP_BATCHES: usize = 4;

/// An input token, and the scored tokens after it in each text.
struct Place {
    token: Token,
    next: Vec<(usize, u32)>,
}

/// Evaluates a model. The common prefix of the texts of a question runs once. Calls `each` with the results so far after
/// groups of questions.
///
/// # Errors
/// `result-missing` if the model has no logits; `weights-unusable` if logits are NaN or infinite; as
/// [`gguf_runtime::Context::run`].
pub fn answers(
    executor: &Arc<Executor>,
    questions: &[Texts],
    options: RunOptions,
    each: &mut dyn FnMut(&Answers),
    progress: &dyn Progress,
) -> Result<Answers, Error> {
    let mut found = Answers::default();
    let mut rest = questions;
    while !rest.is_empty() {
        let (group, later) = rest.split_at(group_len(rest, MAX_GROUP_BATCHES * options.batch));
        rest = later;
        let mut scores = scores(executor, group, options, progress)?.into_iter();
        for question in group {
            let count = question.texts.len();
            let scores: Vec<f64> = scores.by_ref().take(count).collect();
            let better = |best, other| if scores[other] > scores[best] { other } else { best };
            let picked = (0..count).reduce(better).unwrap_or(0);
            let rights = question.texts.iter().filter(|text| text.right).count();
            found.questions.push(Answered {
                number: question.number,
                picked,
                right: question.texts[picked].right,
                chance: rights as f64 / count as f64,
                scores,
            });
        }
        each(&found);
    }
    Ok(found)
}

/// Returns the number of leading questions that fit into `tokens` tokens; at least one.
fn group_len(questions: &[Texts], tokens: usize) -> usize {
    let mut sum = 0;
    let fits = |question: &&Texts| {
        // The KV cache of each text has all of its tokens.
        sum += question.texts.iter().map(|text| text.ids.len()).sum::<usize>();
        sum <= tokens
    };
    questions.iter().take_while(fits).count().max(1)
}

/// Returns the scores of all texts of questions.
fn scores(
    executor: &Arc<Executor>,
    questions: &[Texts],
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    let texts: Vec<_> = questions.iter().flat_map(|question| &question.texts).collect();
    let largest = texts.iter().flat_map(|text| &text.ids).copied().max();
    require_logits(executor, largest)?;
    let context = ContextOptions {
        tokens: texts.iter().map(|text| text.ids.len()).max().unwrap_or(0),
        sequences: texts.len(),
        cache_type: options.cache_type,
        batch: options.batch,
    };
    let mut reader = Reader {
        context: Context::new(executor.clone(), context)?,
        executor,
        options,
        sums: vec![0.0; texts.len()],
        numbers: questions.iter().flat_map(|q| q.texts.iter().map(|_| q.number)).collect(),
        progress,
    };
    // The common prefix of each question runs in the sequence of its first text.
    let mut first = 0;
    let mut common = Vec::new();
    for question in questions {
        let all = first..first + question.texts.len();
        for place in 0..question.common {
            let mut next = Vec::new();
            for (text, of) in all.clone().zip(&question.texts) {
                if of.counted.contains(&(place + 1)) {
                    next.push((text, of.ids[place + 1]));
                }
            }
            common.push(Place::new(question.texts[0].ids[place], first, next));
        }
        first = all.end;
    }
    reader.read(&common)?;
    let (mut first, mut own) = (0, Vec::new());
    for question in questions {
        reader.context.copy(first, first..first + question.texts.len());
        for (text, of) in (first..).zip(&question.texts) {
            // The last scored token is only a target.
            for place in question.common..of.counted.end - 1 {
                let counts = of.counted.contains(&(place + 1));
                let next = if counts { vec![(text, of.ids[place + 1])] } else { Vec::new() };
                own.push(Place::new(of.ids[place], text, next));
            }
        }
        first += question.texts.len();
    }
    reader.read(&own)?;
    let mean = |(sum, text): (&f64, &&crate::Text)| sum / text.counted.len() as f64;
    Ok(reader.sums.iter().zip(&texts).map(mean).collect())
}

impl Place {
    fn new(id: u32, sequence: usize, next: Vec<(usize, u32)>) -> Self {
        Self { token: Token { id, sequence, output: !next.is_empty() }, next }
    }
}

struct Reader<'r> {
    context: Context,
    executor: &'r Arc<Executor>,
    options: RunOptions,
    /// Sum of the log-probabilities of each text.
    sums: Vec<f64>,
    /// Number of the question of each text.
    numbers: Vec<usize>,
    progress: &'r dyn Progress,
}

impl Reader<'_> {
    /// Runs tokens, and adds the log-probabilities of the scored tokens after them.
    fn read(&mut self, places: &[Place]) -> Result<(), Error> {
        for piece in batch_ranges(places.len(), std::slice::from_ref(self.executor), self.options) {
            let places = &places[piece];
            let batch = Batch { tokens: places.iter().map(|place| place.token).collect() };
            let logits = self.context.run(&batch, OutputKind::Logits, self.progress)?;
            let asked: Vec<_> = places.iter().filter(|place| place.token.output).collect();
            let logarithms = |(row, place): (usize, &&Place)| {
                let scores = Scores::new(logits.row(row))?;
                let of = |(_, id): &(usize, u32)| scores.log_probability(*id as usize);
                Some(place.next.iter().map(of).collect())
            };
            let found: Vec<Option<Vec<f64>>> =
                asked.par_iter().enumerate().map(logarithms).collect();
            for (place, found) in asked.iter().zip(found) {
                let found = found.ok_or_else(|| {
                    let number = self.numbers[place.next[0].0];
                    let what = format!("logits are NaN or infinite in question {number}");
                    Error::weights("output", what)
                })?;
                for ((text, _), logarithm) in place.next.iter().zip(found) {
                    self.sums[*text] += logarithm;
                }
            }
            self.progress.step(places.len() as u64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(right: usize, count: usize) -> Answers {
        let answered = |number| Answered {
            number,
            scores: vec![0.0; 4],
            picked: 0,
            right: number < right,
            chance: 0.25,
        };
        Answers { questions: (0..count).map(answered).collect() }
    }

    #[test]
    fn accuracy_and_its_error() {
        let some = answers(30, 40);
        assert_eq!((some.right(), some.share(), some.chance()), (30, 0.75, 0.25));
        assert!((some.error() - (0.75f64 * 0.25 / 39.0).sqrt()).abs() < 1e-12);
        // As in llama.cpp.
        let (low, high) = some.interval();
        assert!((low - 0.598_060_386).abs() < 1e-9 && (high - 0.858_128_814).abs() < 1e-9);
        let (low, high) = answers(0, 1).interval();
        assert!(low == 0.0 && (high - 0.793_450_7).abs() < 1e-6, "{high}");
        assert_eq!((answers(1, 1).error(), Answers::default().share()), (0.0, 0.0));
    }
}
