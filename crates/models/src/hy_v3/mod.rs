//! Hunyuan 3 (Tencent; class `HYV3ForCausalLM`): architecture `hy_v3`.
//!
//! GQA with RMS norms of each head's queries and keys (QK-norm), RoPE in NeoX layout, RMS pre-norm.
//! Layers have a dense SwiGLU FFN or MoE: sigmoid router with a bias for the selection
//! (`exp_probs_b`), normalized and scaled weights, and shared experts.
//!
//! Multi-token prediction (MTP) layers follow the trunk; the graph leaves them out. It is that of
//! `dots1`. Source: `HYV3ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
