//! Text model of MiniMax-M3 (MiniMax; classes `MiniMaxM3SparseForCausalLM` and
//! `MiniMaxM3SparseForConditionalGeneration`): architecture `minimax-m3`.
//!
//! GQA with QK-norm per head and partial RoPE in NeoX layout. MoE layers use block-sparse
//! attention: an indexer with one query head per KV head selects the top-k blocks of tokens, beside
//! the most recent blocks.
//!
//! RMS pre-norm; checkpoints store the norm weights as differences from 1. After leading dense
//! layers, MoE with a sigmoid router, selection bias and shared experts. All FFNs use the clamped
//! gate of gpt-oss (alpha 1.702, limit 7).

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
