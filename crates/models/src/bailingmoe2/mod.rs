//! Ling and Ring, second generation (Bailing MoE V2), by Ant Group's inclusionAI; Sarvam by Sarvam
//! AI.
//!
//! Grouped-query attention with a fused QKV projection and RMS QK-norm per head. RoPE in NeoX
//! layout over half of each head (Sarvam: over whole heads). RMS pre-norms. SwiGLU: leading dense
//! layers, then a MoE with expert groups, a selection bias and shared experts of their own width;
//! the router function is the key `expert_gating_func`. Multi-token prediction layers after the
//! last layer are converted and not run. Sarvam's selection biases are centered at 0. The graph is
//! that of `qwen`. Sources: classes `BailingMoeV2ForCausalLM` and `SarvamMoEForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
