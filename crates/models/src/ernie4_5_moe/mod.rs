//! ERNIE 4.5 with a mixture of experts, by Baidu.
//!
//! Attention, RoPE and norms are those of `ernie4_5`: grouped-query attention, interleaved RoPE,
//! RMS pre-norms. SwiGLU: leading dense layers, then a MoE with a softmax router, a selection bias
//! (`exp_probs_b`) and shared experts. Multi-token prediction layers (`mtp_*`) are dropped. The
//! graph is that of `llama`. Sources: class `Ernie4_5_MoeForCausalLM`, llama.cpp's
//! `src/models/ernie4-5-moe.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
