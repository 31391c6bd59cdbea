//! Jais (Inception, MBZUAI and Cerebras; class `JAISLMHeadModel`): architecture `jais`.
//!
//! As GPT-2 with ALiBi in place of learned positions and a SwiGLU FFN: MHA over a fused QKV matrix
//! with biases, layer norms with bias before attention and FFN. Attention logits are scaled by
//! `1/head_dim` (muP), not `1/sqrt(head_dim)`.
//!
//! The conversion folds the multipliers of embedding and LM head into their weights, and derives
//! the maximum ALiBi bias from the slope of the first head. Source: arXiv 2308.16149.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
