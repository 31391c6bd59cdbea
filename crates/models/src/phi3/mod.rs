//! Phi-3 (arXiv:2404.14219) and Phi-4 (arXiv:2412.08905) of Microsoft.
//!
//! - Attention: MHA or GQA with a fused QKV matrix; a sliding window in all layers if the key is
//!   not 0.
//! - RoPE: NeoX layout, also on a part of each head; LongRoPE scaling by the tensors
//!   `rope_factors_long` and `rope_factors_short`, with an attention factor.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU, with gate and up projection in one matrix.
//!
//! Classes `Phi3ForCausalLM` and `Phi4ForCausalLMV`; `phi3.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
