//! KL divergence of a model from a reference.

use crate::mean::covariance;
use crate::{Mean, Miss, Perplexity, Worst};

/// Number of sums per chunk.
pub(crate) const SUMS: usize = 18;

/// KL divergence and related statistics of a model and its reference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divergence {
    /// Perplexity of the model.
    pub model: Perplexity,
    /// Perplexity of the reference.
    pub reference: Perplexity,
    /// KL divergence of the predictions from those of the reference, in nats.
    pub divergence: Mean,
    /// Change of the probability of the actual token (Δp), from -1 to 1.
    pub more_likely: Mean,
    /// Squared changes of the probability.
    pub more_likely_squared: Mean,
    /// Number of tokens with top-1 agreement.
    pub top1_agreement: u64,
    /// First evaluated position of a chunk.
    pub first_position: usize,
    /// KL divergence of each evaluated token, in text order; equally many per chunk.
    pub divergences: Vec<f32>,
    /// Δp of each evaluated token, in text order.
    pub changes: Vec<f32>,
    /// Tokens with the greatest KL divergence.
    pub worst: Worst,
    /// Sum of the products of both negative log-likelihoods.
    pub(crate) products: f64,
}

impl Divergence {
    /// Creates the result of a chunk, with up to `worst` worst predictions.
    pub(crate) fn of_chunk(first_position: usize, worst: usize) -> Self {
        let one = Perplexity { chunks: 1, ..Default::default() };
        let worst = Worst::new(worst);
        Self { model: one, reference: one, first_position, worst, ..Default::default() }
    }

    /// Returns the top-1 agreement and its standard error.
    pub fn top1_agreement(&self) -> (f64, f64) {
        let count = self.divergence.count.max(1) as f64;
        let share = self.top1_agreement as f64 / count;
        (share, (share * (1.0 - share) / (count - 1.0).max(1.0)).sqrt())
    }

    /// Returns the RMS of Δp and its standard error.
    pub fn change(&self) -> (f64, f64) {
        let root = self.more_likely_squared.value().sqrt();
        let error = if root > 0.0 { 0.5 / root * self.more_likely_squared.error() } else { 0.0 };
        (root, error)
    }

    /// Returns the logarithm of the perplexity ratio and its standard error.
    pub fn log_ratio(&self) -> (f64, f64) {
        let (a, b) = (self.model.surprise, self.reference.surprise);
        let variance = a.error().powi(2) + b.error().powi(2) - 2.0 * self.covariance();
        (a.value() - b.value(), variance.max(0.0).sqrt())
    }

    /// Returns the perplexity ratio and its standard error.
    pub fn ratio(&self) -> (f64, f64) {
        let (log, error) = self.log_ratio();
        (libm::exp(log), libm::exp(log) * error)
    }

    /// Returns the perplexity difference and its standard error.
    pub fn difference(&self) -> (f64, f64) {
        let (a, b) = (self.model, self.reference);
        let covariance = a.value() * b.value() * self.covariance();
        let variance = a.error().powi(2) + b.error().powi(2) - 2.0 * covariance;
        (a.value() - b.value(), variance.max(0.0).sqrt())
    }

    /// Returns the correlation of the negative log-likelihoods.
    pub fn correlation(&self) -> f64 {
        let errors = self.model.surprise.error() * self.reference.surprise.error();
        if errors > 0.0 { self.covariance() / errors } else { 1.0 }
    }

    /// Returns the mean KL divergence at each position from [`Divergence::first_position`] on.
    pub fn by_position(&self) -> Vec<Mean> {
        let positions = self.divergences.len() / self.model.chunks.max(1);
        let mut means = vec![Mean::default(); positions];
        for chunk in self.divergences.chunks_exact(positions.max(1)) {
            for (mean, divergence) in means.iter_mut().zip(chunk) {
                mean.add(f64::from(*divergence));
            }
        }
        means
    }

    /// Adds chunks. The result is bit-identical for the same chunks in the same order.
    pub fn append(&mut self, other: &Self) {
        self.add_sums(&other.sums());
        self.append_lists(other);
    }

    /// Returns all sums, in the order of [`Divergence::add_sums`].
    pub(crate) fn sums(&self) -> [f64; SUMS] {
        let of = |mean: &Mean| [mean.count as f64, mean.sum, mean.squares];
        let means = [
            of(&self.model.surprise),
            of(&self.reference.surprise),
            of(&self.divergence),
            of(&self.more_likely),
            of(&self.more_likely_squared),
        ];
        let mut sums = [0.0; SUMS];
        sums[..3 * means.len()].copy_from_slice(means.as_flattened());
        sums[15..].copy_from_slice(&[
            self.model.chunks as f64,
            self.top1_agreement as f64,
            self.products,
        ]);
        sums
    }

    /// Adds sums of other chunks.
    pub(crate) fn add_sums(&mut self, sums: &[f64; SUMS]) {
        let means = [
            &mut self.model.surprise,
            &mut self.reference.surprise,
            &mut self.divergence,
            &mut self.more_likely,
            &mut self.more_likely_squared,
        ];
        for (mean, sums) in means.into_iter().zip(sums.chunks_exact(3)) {
            mean.append(&Mean { count: sums[0] as u64, sum: sums[1], squares: sums[2] });
        }
        self.model.chunks += sums[15] as usize;
        self.reference.chunks += sums[15] as usize;
        self.top1_agreement += sums[16] as u64;
        self.products += sums[17];
    }

    /// Appends the values of each evaluated token of other chunks.
    pub(crate) fn append_lists(&mut self, other: &Self) {
        self.first_position = other.first_position;
        self.divergences.extend(&other.divergences);
        self.changes.extend(&other.changes);
        self.worst.append(&other.worst);
    }

    fn covariance(&self) -> f64 {
        covariance(&self.model.surprise, &self.reference.surprise, self.products)
    }

    pub(crate) fn add(&mut self, miss: Miss) {
        let (of_model, of_reference) = (miss.actual.model, miss.actual.reference);
        self.model.surprise.add(-of_model);
        self.reference.surprise.add(-of_reference);
        self.products += of_model * of_reference;
        self.divergence.add(miss.divergence);
        let change = libm::exp(of_model) - libm::exp(of_reference);
        self.more_likely.add(change);
        self.more_likely_squared.add(change * change);
        self.top1_agreement += u64::from(miss.by_model.id == miss.by_reference.id);
        self.divergences.push(miss.divergence as f32);
        self.changes.push(change as f32);
        self.worst.add(miss);
    }
}

/// Sorted values for quantiles.
#[derive(Clone, Debug)]
pub struct Spread(Vec<f32>);

impl Spread {
    /// Sorts values.
    pub fn new(numbers: &[f32]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f32::total_cmp);
        Self(sorted)
    }

    /// Returns a quantile, from 0 (minimum) to 1 (maximum), interpolated linearly; 0 without values.
    pub fn at(&self, share: f64) -> f64 {
        let Some(last) = self.0.len().checked_sub(1) else { return 0.0 };
        let place = share.clamp(0.0, 1.0) * last as f64;
        let (low, part) = (place as usize, place.fract());
        let number = |at: usize| f64::from(self.0[at.min(last)]);
        (1.0 - part) * number(low) + part * number(low + 1)
    }
}
