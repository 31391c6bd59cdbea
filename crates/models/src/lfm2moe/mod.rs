//! LFM2 MoE (Liquid AI; class `Lfm2MoeForCausalLM`): architecture `lfm2moe`.
//!
//! As `lfm2`: gated short convolutions in most layers, GQA with QK-norm and RoPE (NeoX layout) in
//! the others, RMS pre-norm. After leading dense layers, MoE with a sigmoid router, a selection
//! bias (`exp_probs_b`), normalized weights and SwiGLU experts.
//!
//! The graph is that of `lfm2`. Source: `Lfm2MoeForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
