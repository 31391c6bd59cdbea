//! RND1 of Radical Numerics: a diffusion language model, which unmasks tokens in any order.
//!
//! - Attention: GQA with RMS QK-norm for each head, bidirectional (`attention.causal` is false).
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: as in `qwen3moe`.
//! - Vocabulary: with a mask token.
//!
//! Class `RND1`; `rnd1.cpp` in llama.cpp. The graph is that of `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
