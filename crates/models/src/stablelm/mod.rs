//! StableLM 3B, StableLM 2 1.6B (arXiv:2402.17834) and 12B of Stability AI.
//!
//! - Attention: MHA or GQA; the 12B model has QK-norm with weights for each head.
//! - RoPE: NeoX layout on a part of each head (a quarter unless stated).
//! - Norms: pre-norm layer norms with bias.
//! - FFN: SwiGLU; it runs in parallel with attention in models without a norm before it.
//!
//! Class `StableLmForCausalLM` in `transformers`; `stablelm.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
