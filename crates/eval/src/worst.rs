//! Evaluated tokens with the greatest KL divergence.

/// A token with its log-probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Token id.
    pub id: u32,
    /// Log-probability of the reference.
    pub reference: f64,
    /// Log-probability of the model.
    pub model: f64,
}

/// Predictions for one evaluated token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Miss {
    /// Number of the chunk, counted from 0.
    pub chunk: usize,
    /// Position in the chunk.
    pub position: usize,
    /// KL divergence from the reference, in nats.
    pub divergence: f64,
    /// The token that actual.
    pub actual: Candidate,
    /// The most likely token of the reference.
    pub by_reference: Candidate,
    /// The most likely token of the model.
    pub by_model: Candidate,
    /// Last tokens before the evaluated one.
    pub before: Vec<u32>,
}

/// A limited number of predictions with the greatest KL divergence, the greatest first, equal ones in text order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worst {
    max: usize,
    misses: Vec<Miss>,
}

impl Worst {
    /// Creates a list of at most `max` predictions.
    pub fn new(max: usize) -> Self {
        Self { max, misses: Vec::new() }
    }

    /// Returns the maximum number of predictions.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns the predictions.
    pub fn misses(&self) -> &[Miss] {
        &self.misses
    }

    /// Sets the tokens before each prediction.
    pub(crate) fn with_tokens(&mut self, before: impl Fn(&Miss) -> Vec<u32>) {
        self.misses.iter_mut().for_each(|miss| miss.before = before(miss));
    }

    /// Adds a prediction if it is among the worst.
    pub(crate) fn add(&mut self, miss: Miss) {
        let order = |one: &Miss| {
            let place = (one.chunk, one.position).cmp(&(miss.chunk, miss.position));
            miss.divergence.total_cmp(&one.divergence).then(place)
        };
        let place = self.misses.partition_point(|one| order(one).is_lt());
        if place < self.max {
            self.misses.truncate(self.max - 1);
            self.misses.insert(place, miss);
        }
    }

    /// Adds the predictions of another list; the maximum is that of the larger one.
    pub fn append(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        other.misses.iter().for_each(|miss| self.add(miss.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_worst_in_order() {
        let miss =
            |(chunk, divergence): (usize, f64)| Miss { chunk, divergence, ..Miss::default() };
        let all = [(0, 1.0), (1, 5.0), (2, 3.0), (3, 5.0), (4, 0.0), (5, 4.0)].map(miss);
        let chunks = |worst: &Worst| worst.misses().iter().map(|one| one.chunk).collect::<Vec<_>>();
        let mut worst = Worst::new(3);
        all.iter().for_each(|one| worst.add(one.clone()));
        assert_eq!(chunks(&worst), [1, 3, 5]);
        // In another order, and merged from parts.
        let mut parts = [Worst::new(3), Worst::new(3)];
        all.iter().rev().enumerate().for_each(|(i, one)| parts[i % 2].add(one.clone()));
        let mut merged = Worst::default();
        parts.iter().for_each(|part| merged.append(part));
        assert_eq!(merged, worst);
        let mut none = Worst::new(0);
        none.add(all[0].clone());
        assert!(none.misses().is_empty());
    }
}
