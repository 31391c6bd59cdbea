//! Orion-14B of OrionStar (arXiv:2401.12246).
//!
//! - Attention: MHA or GQA.
//! - RoPE: NeoX layout.
//! - Norms: pre-norm layer norms with bias, whose epsilon config.json calls `rms_norm_eps`.
//! - FFN: SwiGLU.
//! - Vocabulary: SentencePiece.
//!
//! Class `OrionForCausalLM`; `orion.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
