//! What windows gave, one after the other.

use gguf_quantize::imatrix::Imatrix;

use crate::divergence::SUMS;
use crate::sums::Sums;
use crate::{Divergence, Perplexity};

/// What the windows of a part gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    /// How well a model predicts.
    Perplexity(Perplexities),
    /// How far it is from another one.
    Divergence(Divergences),
    /// What enters its products.
    Importance(Importance),
}

impl Tally {
    /// How many windows.
    pub fn windows(&self) -> usize {
        match self {
            Self::Perplexity(all) => all.windows.len(),
            Self::Divergence(all) => all.windows.len(),
            Self::Importance(all) => all.windows,
        }
    }

    /// Whether both are of one kind, and of the same size where that does not depend on the text.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Perplexity(_), Self::Perplexity(_)) => true,
            (Self::Divergence(a), Self::Divergence(b)) => {
                let positions = |all: &Divergences| match all.windows.len() {
                    0 => None,
                    windows => {
                        Some((all.total.first_position, all.total.divergences.len() / windows))
                    }
                };
                positions(a).zip(positions(b)).is_none_or(|(a, b)| a == b)
            }
            (Self::Importance(a), Self::Importance(b)) => a.sums.is_like(&b.sums),
            _ => false,
        }
    }

    /// What the windows after these gave; of a kind with it.
    pub(super) fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Perplexity(a), Self::Perplexity(b)) => {
                b.windows.iter().for_each(|window| a.add(window));
            }
            (Self::Divergence(a), Self::Divergence(b)) => a.append(b),
            (Self::Importance(a), Self::Importance(b)) => a.append(b),
            _ => {}
        }
    }
}

/// Window by window how well a model predicts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Perplexities {
    pub(super) windows: Vec<Perplexity>,
    total: Perplexity,
}

impl Perplexities {
    /// One window more.
    pub fn add(&mut self, window: &Perplexity) {
        self.windows.push(*window);
        self.total.append(window);
    }

    /// All windows together.
    pub fn total(&self) -> &Perplexity {
        &self.total
    }
}

/// Window by window how far a model is from another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divergences {
    pub(super) windows: Vec<[f64; SUMS]>,
    total: Divergence,
}

impl Divergences {
    /// One window more.
    pub fn add(&mut self, window: &Divergence) {
        self.windows.push(window.sums());
        self.total.append(window);
    }

    /// All windows together.
    pub fn total(&self) -> &Divergence {
        &self.total
    }

    /// Of the sums of windows, and lists of all of them.
    pub(super) fn new(windows: Vec<[f64; SUMS]>, lists: Divergence) -> Self {
        let mut total = lists;
        windows.iter().for_each(|sums| total.add_sums(sums));
        Self { windows, total }
    }

    fn append(&mut self, other: &Self) {
        // Sums are added window by window, as in one run.
        self.total.append_lists(&other.total);
        other.windows.iter().for_each(|sums| self.total.add_sums(sums));
        self.windows.extend(&other.windows);
    }
}

/// What enters the products of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Importance {
    /// What the text is called.
    pub dataset: String,
    /// Tokens of a window.
    pub len: usize,
    /// Windows that were read.
    pub windows: usize,
    /// Sums by tensor.
    pub sums: Sums,
}

impl Importance {
    /// The importance matrix.
    pub fn imatrix(&self) -> Imatrix {
        Imatrix {
            datasets: vec![self.dataset.clone()],
            chunk_count: self.windows as u32,
            chunk_size: Some(self.len as u32),
            entries: self.sums.entries(),
        }
    }

    fn append(&mut self, other: &Self) {
        self.windows += other.windows;
        self.sums.append(&other.sums);
    }
}
