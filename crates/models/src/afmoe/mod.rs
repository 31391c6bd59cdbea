//! Trinity (AFMoE) by Arcee AI.
//!
//! Gated grouped-query attention: heads times the sigmoid of a projection of the layer input, with
//! RMS QK-norm per head. Of four layers three have a sliding window and RoPE (NeoX layout); the
//! fourth has full attention without RoPE. Sandwich RMS norms around attention and FFN. Token
//! embeddings are scaled by the square root of the hidden size (muP). SwiGLU: leading dense layers,
//! then a MoE with a sigmoid router, a selection bias (`exp_probs_b`) and shared experts. Sources:
//! class `AfmoeForCausalLM`, llama.cpp's `src/models/afmoe.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
