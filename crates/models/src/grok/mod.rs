//! Grok 1 and Grok 2 (xAI; classes `Grok1ForCausalLM` and `GrokForCausalLM`): architecture `grok`.
//!
//! GQA with soft-capped attention logits (30), RoPE in NeoX layout (YaRN in Grok 2), RMS norms
//! before and after attention and FFN (sandwich norm). Embedding and logits have multipliers, with
//! the constants of Grok 1 where keys are missing.
//!
//! Every layer is MoE with GELU-gated experts: softmax over all experts, weights not normalized,
//! router logits optionally soft-capped. Grok 2 adds a dense FFN; the sum of both is multiplied by
//! `1/sqrt(2)`. The attention temperature of Grok 2 beyond 1024 tokens is not computed.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
