//! DeepSeek V4: compressed sparse attention, hyper-connections and hash routing.
//!
//! Attention with one KV head whose keys are the values (after inverse RoPE of the output),
//! low-rank queries, RMS norm of queries per head, attention sinks, a sliding window, and a grouped
//! low-rank output projection. Layers with a `compress_ratio` attend in addition to blocks of that
//! many tokens, each compressed to one key by a gated sum with learned positions; where the ratio
//! is small, an indexer selects the top-k blocks. RoPE (interleaved) on the last dimensions of each
//! head; layers with compression have a base frequency of their own and RoPE scaling. The residual
//! stream consists of several hyper-connection streams with Sinkhorn normalization (arXiv
//! 2512.24880). MoE with sqrt-softplus scores, clamped SwiGLU and a shared expert; the first
//! `hash_layer_count` layers select experts by token id. Source: class `DeepseekV4ForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
