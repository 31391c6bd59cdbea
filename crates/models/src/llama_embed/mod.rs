//! Embedding models with the Llama decoder and bidirectional attention (class
//! `LlamaBidirectionalModel`): architecture `llama-embed`.
//!
//! As `llama`: GQA, RoPE in interleaved layout (the rows of Q and K are permuted), RMS pre-norm,
//! SwiGLU FFN. There is no causal mask and no KV cache. The output are hidden states, pooled to an
//! embedding.
//!
//! The graph is shared with `llada`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
