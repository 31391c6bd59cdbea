//! openPangu-Embedded of Huawei.
//!
//! - Attention: GQA, in some models with biases, also of the output projection.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Conversion: key and value length are always written; tied output matrices are dropped.
//!
//! Class `PanguEmbeddedForCausalLM`; `pangu-embedded.cpp` in llama.cpp. The graph is that of
//! `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
