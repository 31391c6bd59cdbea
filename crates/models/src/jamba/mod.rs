//! Jamba (AI21; class `JambaForCausalLM`): architecture `jamba`.
//!
//! Most layers are Mamba state-space layers (SSM) with RMS norms of time step, B and C; every
//! eighth layer by default is grouped-query attention (GQA). A layer whose number of KV heads is 0
//! is an SSM layer. There is no RoPE: SSM layers carry the order of tokens. RMS pre-norm.
//!
//! Every second layer by default is MoE (softmax router, weights not normalized, SwiGLU experts);
//! the others have a dense SwiGLU FFN. Source: arXiv 2403.19887.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
