//! The predictions that a model is farthest off.

/// A token that may come, and how likely it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Its id.
    pub id: u32,
    /// The logarithm of its probability by the reference.
    pub reference: f64,
    /// The same by the model.
    pub model: f64,
}

/// A prediction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Miss {
    /// The window, counted from 0.
    pub window: usize,
    /// The tokens of the window before the predicted one.
    pub position: usize,
    /// How far the model is from the reference, in nats.
    pub divergence: f64,
    /// The token that came.
    pub came: Candidate,
    /// The most likely token by the reference.
    pub by_reference: Candidate,
    /// The most likely token by the model.
    pub by_model: Candidate,
    /// Of those that are kept the last tokens before it.
    pub before: Vec<u32>,
}

/// So many predictions with the greatest divergence, the greatest first; of equals the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worst {
    most: usize,
    misses: Vec<Miss>,
}

impl Worst {
    /// Room for so many.
    pub fn new(most: usize) -> Self {
        Self { most, misses: Vec::new() }
    }

    /// How many there is room for.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Those that there are.
    pub fn misses(&self) -> &[Miss] {
        &self.misses
    }

    /// Says of each which tokens came before it.
    pub(crate) fn with_tokens(&mut self, before: impl Fn(&Miss) -> Vec<u32>) {
        self.misses.iter_mut().for_each(|miss| miss.before = before(miss));
    }

    /// One more, if it is among the worst.
    pub(crate) fn add(&mut self, miss: Miss) {
        let order = |one: &Miss| {
            let place = (one.window, one.position).cmp(&(miss.window, miss.position));
            miss.divergence.total_cmp(&one.divergence).then(place)
        };
        let place = self.misses.partition_point(|one| order(one).is_lt());
        if place < self.most {
            self.misses.truncate(self.most - 1);
            self.misses.insert(place, miss);
        }
    }

    /// More of them; there is room for those of the larger.
    pub fn append(&mut self, other: &Self) {
        self.most = self.most.max(other.most);
        other.misses.iter().for_each(|miss| self.add(miss.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_are_kept_in_order() {
        let miss =
            |(window, divergence): (usize, f64)| Miss { window, divergence, ..Miss::default() };
        let all = [(0, 1.0), (1, 5.0), (2, 3.0), (3, 5.0), (4, 0.0), (5, 4.0)].map(miss);
        let windows =
            |worst: &Worst| worst.misses().iter().map(|one| one.window).collect::<Vec<_>>();
        let mut worst = Worst::new(3);
        all.iter().for_each(|one| worst.add(one.clone()));
        assert_eq!(windows(&worst), [1, 3, 5]);
        // In another order, and in parts.
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
