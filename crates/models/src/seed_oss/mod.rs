//! Seed-OSS 36B of ByteDance.
//!
//! - Attention: GQA with biases of queries, keys and values, not of the output projection.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm; the norm before the FFN is the tensor `post_attention_norm`.
//! - FFN: SwiGLU.
//!
//! Class `SeedOssForCausalLM` in `transformers`; `seed-oss.cpp` in llama.cpp. GLM 4.5 has the same
//! graph.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
