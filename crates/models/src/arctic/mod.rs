//! Arctic by Snowflake: a dense transformer with a residual MoE.
//!
//! Grouped-query attention with RoPE in interleaved layout and RMS pre-norms. A layer has two
//! feed-forward paths that are summed: a dense SwiGLU network as wide as the model after
//! attention, and a MoE that reads the layer input (before attention) through a norm of its own,
//! `ffn_norm_exps`. The router is a softmax over all experts; the weights of the selected experts
//! are normalized. Experts have the checkpoint names of Mixtral. Source: class `ArcticForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
