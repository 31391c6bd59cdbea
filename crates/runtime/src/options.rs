//! Options of a context.

use crate::kv_cache::CacheType;

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
    /// Maximum memory in bytes of caches and states, and separately of the values of a batch.
    pub memory: u64,
}

impl Default for ContextOptions {
    /// Returns one sequence of 4096 tokens, batches of 512 and a limit of 64 GiB.
    fn default() -> Self {
        Self {
            tokens: 4096,
            sequences: 1,
            cache_type: CacheType::default(),
            batch: 512,
            memory: 64 << 30,
        }
    }
}
