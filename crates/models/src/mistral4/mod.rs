//! Text model of Mistral 4 (Mistral AI; class `Mistral3ForConditionalGeneration` whose text model
//! has `model_type` `mistral4`): architecture `mistral4`.
//!
//! As `deepseek2`: multi-head latent attention (MLA), RoPE in interleaved layout with YaRN, RMS
//! pre-norm, MoE with shared experts. Queries are scaled with an attention temperature that grows
//! with the position beyond the original context (`llama_4_scaling_beta`).
//!
//! Gate and up projections of all experts stay fused in `ffn_gate_up_exps`. Keys, tensors and graph
//! are those of `deepseek2`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
