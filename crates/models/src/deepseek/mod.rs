//! DeepSeekMoE (arXiv 2401.06066) by DeepSeek: the first generation.
//!
//! Attention of Llama: multi-head or grouped-query, RoPE in interleaved layout (query and key rows
//! are permuted on conversion). RMS pre-norms. SwiGLU: leading dense layers, then a MoE of small
//! experts with a softmax router, whose weights are not normalized over the selected experts, and
//! shared experts. Sources: class `DeepseekForCausalLM`, llama.cpp's `src/models/deepseek.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
