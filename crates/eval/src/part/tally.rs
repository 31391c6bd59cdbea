//! Results of chunks.

use gguf_quantize::imatrix::Imatrix;

use crate::divergence::SUMS;
use crate::sums::Sums;
use crate::{Divergence, Perplexity};

/// Results of the chunks of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    /// Perplexity.
    Perplexity(Perplexities),
    /// KL divergence from a reference.
    Divergence(Divergences),
    /// Importance matrix.
    Importance(Importance),
}

impl Tally {
    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        match self {
            Self::Perplexity(all) => all.chunks.len(),
            Self::Divergence(all) => all.chunks.len(),
            Self::Importance(all) => all.chunks,
        }
    }

    /// Whether both have the same kind and shape.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Perplexity(_), Self::Perplexity(_)) => true,
            (Self::Divergence(a), Self::Divergence(b)) => {
                let positions = |all: &Divergences| match all.chunks.len() {
                    0 => None,
                    chunks => {
                        Some((all.total.first_position, all.total.divergences.len() / chunks))
                    }
                };
                positions(a).zip(positions(b)).is_none_or(|(a, b)| a == b)
            }
            (Self::Importance(a), Self::Importance(b)) => a.sums.is_like(&b.sums),
            _ => false,
        }
    }

    /// Appends the results of the following chunks, of the same kind.
    pub(super) fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Perplexity(a), Self::Perplexity(b)) => {
                b.chunks.iter().for_each(|chunk| a.add(chunk));
            }
            (Self::Divergence(a), Self::Divergence(b)) => a.append(b),
            (Self::Importance(a), Self::Importance(b)) => a.append(b),
            _ => {}
        }
    }
}

/// Perplexity of each chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Perplexities {
    pub(super) chunks: Vec<Perplexity>,
    total: Perplexity,
}

impl Perplexities {
    /// Adds a chunk.
    pub fn add(&mut self, chunk: &Perplexity) {
        self.chunks.push(*chunk);
        self.total.append(chunk);
    }

    /// Returns the total of all chunks.
    pub fn total(&self) -> &Perplexity {
        &self.total
    }
}

/// Divergence from the reference model, chunk by chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divergences {
    pub(super) chunks: Vec<[f64; SUMS]>,
    total: Divergence,
}

impl Divergences {
    /// Adds a chunk.
    pub fn add(&mut self, chunk: &Divergence) {
        self.chunks.push(chunk.sums());
        self.total.append(chunk);
    }

    /// Returns the total of all chunks.
    pub fn total(&self) -> &Divergence {
        &self.total
    }

    /// Creates results from the sums of each chunk and the lists of all chunks.
    pub(super) fn new(chunks: Vec<[f64; SUMS]>, lists: Divergence) -> Self {
        let mut total = lists;
        chunks.iter().for_each(|sums| total.add_sums(sums));
        Self { chunks, total }
    }

    fn append(&mut self, other: &Self) {
        // Adds the sums chunk by chunk, in the order of a single run.
        self.total.append_lists(&other.total);
        other.chunks.iter().for_each(|sums| self.total.add_sums(sums));
        self.chunks.extend(&other.chunks);
    }
}

/// Sums of an importance matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Importance {
    /// Name of the text.
    pub dataset: String,
    /// Chunk size in tokens.
    pub len: usize,
    /// Chunks that were read.
    pub chunks: usize,
    /// Sums by tensor.
    pub sums: Sums,
}

impl Importance {
    /// Returns the importance matrix.
    pub fn imatrix(&self) -> Imatrix {
        Imatrix {
            datasets: vec![self.dataset.clone()],
            chunk_count: self.chunks as u32,
            chunk_size: Some(self.len as u32),
            fingerprint: None,
            entries: self.sums.entries(),
        }
    }

    fn append(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.sums.append(&other.sums);
    }
}
