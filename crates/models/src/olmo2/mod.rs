//! OLMo 2 (arXiv:2501.00656) and Olmo 3 of the Allen Institute for AI.
//!
//! - Attention: MHA or GQA with QK-norm over the whole rows. Olmo 3: sliding window in all layers
//!   but the last of each four.
//! - RoPE: NeoX layout; RoPE scaling applies only to layers without a sliding window.
//! - Norms: RMS norms after attention and FFN instead of before (post-norm inside the residual
//!   branch).
//! - FFN: SwiGLU.
//!
//! Classes `Olmo2ForCausalLM` and `Olmo3ForCausalLM` in `transformers`; `olmo2.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
