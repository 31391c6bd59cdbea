//! Hunyuan 4 (Tencent; class `HYV4ForCausalLM`): architecture `hy_v4`.
//!
//! Multi-head latent attention (MLA) with a sigmoid gate and attention sinks. Some layers have a
//! top-k indexer (sparse attention as in `deepseek32`); layers without one reuse the selection of
//! the layer before. RoPE in interleaved layout. RMS pre-norm.
//!
//! The residual stream is `hyper_connection.count` streams wide: hyper-connections (arXiv
//! 2409.19606) weigh the streams before attention and FFN, and spread the output over them. After
//! leading dense layers, MoE with a sigmoid router, shared experts and clamped SwiGLU gates. MTP
//! layers are dropped.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
