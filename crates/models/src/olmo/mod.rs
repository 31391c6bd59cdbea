//! OLMo of the Allen Institute for AI (arXiv:2402.00838).
//!
//! - Attention: MHA or GQA; some models clamp queries, keys and values (`clip_qkv`).
//! - RoPE: interleaved layout; the converter permutes the rows of queries and keys.
//! - Norms: pre-norm layer norms without weight and bias.
//! - FFN: SwiGLU.
//!
//! Classes `OlmoForCausalLM` and `OLMoForCausalLM`; `olmo.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
