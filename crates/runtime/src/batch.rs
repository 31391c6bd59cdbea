//! Batches of tokens.

/// A token of a sequence. Its position is that of the preceding token of the sequence, plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id in the vocabulary.
    pub id: u32,
    /// Number of the sequence, from 0.
    pub sequence: usize,
    /// Whether the output of the token is requested.
    pub output: bool,
}

/// Tokens of one or more sequences, those of each in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tokens.
    pub tokens: Vec<Token>,
}

impl Batch {
    /// Returns tokens of the first sequence, and requests all outputs.
    pub fn all_outputs(ids: &[u32]) -> Self {
        Self::for_sequence(ids, 0)
    }

    /// Returns tokens of a sequence, and requests all outputs.
    pub fn for_sequence(ids: &[u32], sequence: usize) -> Self {
        Self { tokens: ids.iter().map(|&id| Token { id, sequence, output: true }).collect() }
    }

    /// Returns tokens of a sequence, and requests no output.
    pub fn without_outputs(ids: &[u32], sequence: usize) -> Self {
        Self { tokens: ids.iter().map(|&id| Token { id, sequence, output: false }).collect() }
    }

    /// Returns tokens of a sequence, and requests the output of the last one.
    pub fn last_output(ids: &[u32], sequence: usize) -> Self {
        let last = ids.len().saturating_sub(1);
        let token = |(i, &id)| Token { id, sequence, output: i == last };
        Self { tokens: ids.iter().enumerate().map(token).collect() }
    }
}
