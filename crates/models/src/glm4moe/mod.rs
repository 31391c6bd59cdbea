//! GLM 4.5 (arXiv 2508.06471), GLM 4.6 and GLM 4.5V by Zhipu AI; Solar Open by Upstage.
//!
//! Grouped-query attention with optional QKV biases and optional RMS QK-norm per head, RoPE in NeoX
//! layout over half of each head. RMS pre-norms; that of the FFN has the tensor name
//! `post_attention_norm`. SwiGLU: leading dense layers, then a MoE with a sigmoid router, a
//! selection bias (`exp_probs_b`) and shared experts. Multi-token prediction layers are converted
//! and not run. The graph is that of `seed_oss`. Sources: class `Glm4MoeForCausalLM`, llama.cpp's
//! `src/models/glm4-moe.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
