//! Ling and Ring, first generation (Bailing MoE), by Ant Group's inclusionAI.
//!
//! Grouped-query attention with RoPE in interleaved layout over whole heads; the fused QKV
//! projection of checkpoints is split. RMS pre-norms. Every layer has a SwiGLU MoE with a softmax
//! router and shared experts; whether the weights of the selected experts are normalized is the key
//! `expert_weights_norm`. The graph is that of `llama`. Source: class `BailingMoeForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
