//! How far a model is from another one.

use crate::mean::covariance;
use crate::{Mean, Miss, Perplexity, Worst};

/// Numbers that say what a window adds.
pub(crate) const SUMS: usize = 18;

/// How far a model is from the reference.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// The tokens of a window before the first that is predicted.
    pub first_position: usize,
    /// The divergence of each prediction, in the order of the text: of each window the same number.
    pub divergences: Vec<f32>,
    /// How much more likely the token that came is, in the order of the text.
    pub changes: Vec<f32>,
    /// Where the divergence is greatest.
    pub worst: Worst,
    /// The sum of the products of both surprises.
    pub(crate) products: f64,
}

impl Divergence {
    /// Of one window, with room for so many of the worst predictions.
    pub(crate) fn of_a_window(first_position: usize, worst: usize) -> Self {
        let one = Perplexity { windows: 1, ..Default::default() };
        let worst = Worst::new(worst);
        Self { model: one, reference: one, first_position, worst, ..Default::default() }
    }

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

    /// The mean divergence at each position from [`Divergence::first_position`] on, over all windows.
    pub fn by_position(&self) -> Vec<Mean> {
        let positions = self.divergences.len() / self.model.windows.max(1);
        let mut means = vec![Mean::default(); positions];
        for window in self.divergences.chunks_exact(positions.max(1)) {
            for (mean, divergence) in means.iter_mut().zip(window) {
                mean.add(f64::from(*divergence));
            }
        }
        means
    }

    /// More windows. Sums of the same windows that are added in the same order are the same bits.
    pub fn append(&mut self, other: &Self) {
        self.add_sums(&other.sums());
        self.append_lists(other);
    }

    /// All sums, in the order of [`Divergence::add_sums`].
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
            self.model.windows as f64,
            self.same_top as f64,
            self.products,
        ]);
        sums
    }

    /// Adds sums of other windows.
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
        self.model.windows += sums[15] as usize;
        self.reference.windows += sums[15] as usize;
        self.same_top += sums[16] as u64;
        self.products += sums[17];
    }

    /// Adds what is kept of each prediction of other windows.
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
        let (of_model, of_reference) = (miss.came.model, miss.came.reference);
        self.model.surprise.add(-of_model);
        self.reference.surprise.add(-of_reference);
        self.products += of_model * of_reference;
        self.divergence.add(miss.divergence);
        let change = of_model.exp() - of_reference.exp();
        self.more_likely.add(change);
        self.more_likely_squared.add(change * change);
        self.same_top += u64::from(miss.by_model.id == miss.by_reference.id);
        self.divergences.push(miss.divergence as f32);
        self.changes.push(change as f32);
        self.worst.add(miss);
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
