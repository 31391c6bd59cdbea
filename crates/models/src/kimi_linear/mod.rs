//! Kimi Linear (Moonshot AI; classes `KimiLinearForCausalLM` and `KimiLinearModel`): architecture
//! `kimi-linear`.
//!
//! Most layers are Kimi Delta Attention (KDA): linear attention by the gated delta rule with a
//! decay per channel, short convolutions of Q, K and V, and a gated output norm. The others are
//! multi-head latent attention (MLA) without positions (NoPE). A layer whose number of KV heads is
//! 0 is a KDA layer.
//!
//! RMS pre-norm. After leading dense layers, MoE with a sigmoid router, selection bias and shared
//! experts. Source: arXiv 2510.26692.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
