//! How far models are from another one, side by side.

use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Value};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::mean::covariance;
use crate::predictor::{Predictor, not_a_number, pieces};
use crate::scores::Scores;
use crate::{Mean, Perplexity, RunOptions, Windows};

/// How far a model is from the reference.
#[derive(Clone, Debug, Default)]
pub struct Divergence {
    /// The perplexity of the model.
    pub model: Perplexity,
    /// That of the reference.
    pub reference: Perplexity,
    /// The Kullback-Leibler divergence of the model's predictions from those of the reference, in nats.
    pub divergence: Mean,
    /// How much more likely the token that came is to the model than to the reference: -1 to 1.
    pub more_likely: Mean,
    /// The squares of the same.
    pub more_likely_squared: Mean,
    /// How often both have the same most likely token.
    pub same_top: u64,
    /// The divergence of each prediction, in the order of the text.
    pub divergences: Vec<f32>,
    /// How much more likely the token that came is, in the order of the text.
    pub changes: Vec<f32>,
    /// The sum of the products of both surprises.
    products: f64,
}

impl Divergence {
    /// The share of predictions with the same most likely token, and its standard error.
    pub fn same_top(&self) -> (f64, f64) {
        let count = self.divergence.count.max(1) as f64;
        let share = self.same_top as f64 / count;
        (share, (share * (1.0 - share) / (count - 1.0).max(1.0)).sqrt())
    }

    /// The root of the mean square of [`Divergence::more_likely`], and its standard error.
    pub fn change(&self) -> (f64, f64) {
        let root = self.more_likely_squared.value().sqrt();
        let error = if root > 0.0 { 0.5 / root * self.more_likely_squared.error() } else { 0.0 };
        (root, error)
    }

    /// The logarithm of the ratio of the perplexities, model to reference, and its standard error.
    pub fn log_ratio(&self) -> (f64, f64) {
        let (a, b) = (self.model.surprise, self.reference.surprise);
        let variance = a.error().powi(2) + b.error().powi(2) - 2.0 * self.covariance();
        (a.value() - b.value(), variance.max(0.0).sqrt())
    }

    /// The ratio of the perplexities, and its standard error.
    pub fn ratio(&self) -> (f64, f64) {
        let (log, error) = self.log_ratio();
        (log.exp(), log.exp() * error)
    }

    /// The difference of the perplexities, and its standard error.
    pub fn difference(&self) -> (f64, f64) {
        let (a, b) = (self.model, self.reference);
        let covariance = a.value() * b.value() * self.covariance();
        let variance = a.error().powi(2) + b.error().powi(2) - 2.0 * covariance;
        (a.value() - b.value(), variance.max(0.0).sqrt())
    }

    /// How surprises of both go together: -1 to 1.
    pub fn correlation(&self) -> f64 {
        let errors = self.model.surprise.error() * self.reference.surprise.error();
        if errors > 0.0 { self.covariance() / errors } else { 1.0 }
    }

    fn covariance(&self) -> f64 {
        covariance(&self.model.surprise, &self.reference.surprise, self.products)
    }

    fn add(&mut self, place: &Place) {
        self.model.surprise.add(place.surprise);
        self.reference.surprise.add(place.of_reference);
        self.products += place.surprise * place.of_reference;
        self.divergence.add(place.divergence);
        let change = (-place.surprise).exp() - (-place.of_reference).exp();
        self.more_likely.add(change);
        self.more_likely_squared.add(change * change);
        self.same_top += u64::from(place.same_top);
        self.divergences.push(place.divergence as f32);
        self.changes.push(change as f32);
    }
}

/// How numbers are spread.
#[derive(Clone, Debug)]
pub struct Spread(Vec<f32>);

impl Spread {
    /// Of all numbers.
    pub fn new(numbers: &[f32]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f32::total_cmp);
        Self(sorted)
    }

    /// The number that a share of all are below, from 0 (the least) to 1 (the greatest); between two
    /// numbers in proportion. 0 if there is none.
    pub fn at(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return 0.0 };
        let place = share.clamp(0.0, 1.0) * last as f64;
        let (low, part) = (place as usize, place.fract());
        let number = |at: usize| f64::from(self.0[at.min(last)]);
        (1.0 - part) * number(low) + part * number(low + 1)
    }
}

/// What is found at a place.
struct Place {
    surprise: f64,
    of_reference: f64,
    divergence: f64,
    same_top: bool,
}

impl Place {
    fn new(logits: &[f32], reference: &[f32], target: usize) -> Option<Self> {
        let (scores, reference) = (Scores::new(logits)?, Scores::new(reference)?);
        Some(Self {
            surprise: -scores.log_probability(target),
            of_reference: -reference.log_probability(target),
            divergence: reference.divergence(&scores),
            same_top: scores.top() == reference.top(),
        })
    }
}

/// Reads all windows with the reference and with each model, window by window: no more memory for a
/// longer text but the divergences themselves. `each` gets what is known after each window.
///
/// # Errors
/// `vocabulary-differs` if a model has another number of tokens than the reference; else as
/// [`crate::perplexity`].
pub fn divergence(
    reference: &Arc<Executor>,
    models: &[Arc<Executor>],
    windows: &Windows,
    options: RunOptions,
    each: &mut dyn FnMut(&[Divergence]),
    progress: &dyn Progress,
) -> Result<Vec<Divergence>, Error> {
    let all: Vec<_> = std::iter::once(reference).chain(models).cloned().collect();
    let len = |executor: &Arc<Executor>| executor.width(OutputKind::Logits);
    if let Some(number) = models.iter().position(|model| len(model) != len(reference)) {
        let said = |len: Option<usize>| len.map_or("none".to_owned(), |len| len.to_string());
        let (of_model, of_reference) = (said(len(&models[number])), said(len(reference)));
        let what = format!(
            "model {} predicts {of_model} tokens, the reference {of_reference}",
            number + 1
        );
        let help = "compare models of one vocabulary";
        return Err(Error::request("vocabulary-differs", what, help));
    }
    let mut predictors = Vec::with_capacity(all.len());
    for executor in &all {
        predictors.push(Predictor::new(executor, windows, options)?);
    }
    let pieces = pieces(windows, &all, options);
    let mut found = vec![Divergence::default(); models.len()];
    for window in 0..windows.count() {
        let ids = windows.inputs(window);
        for piece in &pieces {
            let first = piece.start.max(windows.places().start);
            let mut of_reference: Option<Value> = None;
            for (number, predictor) in predictors.iter_mut().enumerate() {
                let logits = predictor.read(&ids, piece.clone(), windows.places(), progress)?;
                progress.step(piece.len() as u64)?;
                let Some(reference) = &of_reference else {
                    of_reference = Some(logits);
                    continue;
                };
                let place = |row| {
                    let target = windows.target(window, first + row) as usize;
                    Place::new(logits.row(row), reference.row(row), target)
                };
                let places: Vec<_> = (0..logits.rows).into_par_iter().map(place).collect();
                for (row, place) in places.iter().enumerate() {
                    let place = place.as_ref().ok_or_else(|| not_a_number(window, first + row))?;
                    found[number - 1].add(place);
                }
            }
        }
        for found in &mut found {
            found.model.windows += 1;
            found.reference.windows += 1;
        }
        each(&found);
    }
    Ok(found)
}
