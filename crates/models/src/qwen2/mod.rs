//! Qwen2 and Qwen2.5 of Alibaba Cloud (arXiv:2407.10671, arXiv:2412.15115), and models with its
//! layers: the text models of dots.ocr, Audio Flamingo 3 and Qwen2-Audio, and KORMo.
//!
//! - Attention: GQA with biases of queries, keys and values; a sliding window in the upper layers
//!   if config.json enables it.
//! - RoPE: NeoX layout, with YaRN scaling for long contexts.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Pooling: embedding models store their pooling type.
//!
//! Class `Qwen2ForCausalLM` in `transformers`; `qwen2.cpp` in llama.cpp. The graph is that of
//! `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
