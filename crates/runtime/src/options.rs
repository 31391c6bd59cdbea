//! Options of a context.

use crate::cache_type::CacheType;

/// Default of [`ContextOptions::batch`].
pub(crate) const BATCH: usize = 512;

/// Size of a context.
#[derive(Clone, Copy, Debug)]
pub struct ContextOptions {
    /// Maximum number of tokens of a sequence.
    pub tokens: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// Element type of KV caches.
    pub cache_type: CacheType,
    /// Maximum number of tokens that are computed together; larger batches are split. Encoders compute all at once.
    pub batch: usize,
}

impl Default for ContextOptions {
    /// Returns one sequence of 4096 tokens, an F32 KV cache and batches of 512.
    fn default() -> Self {
        Self { tokens: 4096, sequences: 1, cache_type: CacheType::default(), batch: BATCH }
    }
}
