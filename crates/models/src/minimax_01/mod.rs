//! MiniMax-Text-01 and MiniMax-M1 (MiniMax; classes `MiniMaxText01ForCausalLM` and
//! `MiniMaxM1ForCausalLM`): architecture `minimax-01`.
//!
//! Seven of eight layers are lightning attention: linear attention whose decay per head is fixed
//! (ALiBi slopes, weaker in later layers), with SiLU on Q, K and V, an RMS norm and a sigmoid gate
//! on the output. Every eighth layer is GQA with partial RoPE in NeoX layout.
//!
//! The residual stream continues from the normalized input of each block, times `residual_scale`.
//! RMS norms; every layer is MoE with a softmax router and SwiGLU experts. Source: arXiv 2501.08313
//! and 2506.13585.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
