//! GLM 5 by Zhipu AI: MLA and MoE with DeepSeek sparse attention (DSA).
//!
//! As `deepseek32`: multi-head latent attention to the top-k keys of an indexer, RMS pre-norms,
//! leading dense layers, then a SwiGLU MoE with a sigmoid router, a selection bias and shared
//! experts. Both MLA and indexer have RoPE in interleaved layout. Layers without an indexer (type
//! `shared` in `attention.indexer.types`) reuse the selection of an earlier layer. Multi-token
//! prediction layers are converted and not run. Source: class `GlmMoeDsaForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
