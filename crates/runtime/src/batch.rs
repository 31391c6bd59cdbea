//! Tokens that are computed together.

/// A token of a sequence. Its position is one more than that of the token before it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id in the vocabulary.
    pub id: u32,
    /// The sequence, from 0.
    pub sequence: usize,
    /// Whether the result is asked for.
    pub output: bool,
}

/// Tokens of one or more sequences, those of each in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tokens.
    pub tokens: Vec<Token>,
}

impl Batch {
    /// Tokens of the first sequence, with the results of all.
    pub fn of_all(ids: &[u32]) -> Self {
        Self::of_sequence(ids, 0)
    }

    /// Tokens of a sequence, with the results of all.
    pub fn of_sequence(ids: &[u32], sequence: usize) -> Self {
        Self { tokens: ids.iter().map(|&id| Token { id, sequence, output: true }).collect() }
    }

    /// Tokens of a sequence, with the result of the last one.
    pub fn of_last(ids: &[u32], sequence: usize) -> Self {
        let last = ids.len().saturating_sub(1);
        let token = |(i, &id)| Token { id, sequence, output: i == last };
        Self { tokens: ids.iter().enumerate().map(token).collect() }
    }
}
