//! MiniMax-M2 (MiniMax; class `MiniMaxM2ForCausalLM`): architecture `minimax-m2`.
//!
//! GQA with RMS norms of queries and keys (QK-norm) over all heads together, partial RoPE in NeoX
//! layout, RMS pre-norm, LM head not tied. Every layer is MoE: sigmoid router, selection bias
//! (`exp_probs_b`), normalized weights, SwiGLU experts, no shared expert.
//!
//! The graph is that of `dots1`. Source: `MiniMaxM2ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
