//! Qwen of Alibaba Cloud (first generation, arXiv:2309.16609).
//!
//! - Attention: MHA with a fused QKV matrix and its bias.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU of half of `feed_forward_length`.
//!
//! The graph is a plain decoder with NeoX RoPE, which many architectures share. M-RoPE is the same
//! computation for text, as all sections have the same position.
//!
//! Class `QWenLMHeadModel`; `qwen.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
