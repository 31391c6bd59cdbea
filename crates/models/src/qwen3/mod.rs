//! Qwen3 of Alibaba Cloud (arXiv:2505.09388): the dense models, also for embedding and reranking.
//!
//! - Attention: GQA with RMS QK-norm for each head, without biases; head dimension 128 unless
//!   stated.
//! - RoPE: NeoX layout, with YaRN scaling for long contexts.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Rerankers have a classification head (`cls.output`), embedding models a pooling type.
//!
//! Class `Qwen3ForCausalLM` in `transformers`; `qwen3.cpp` in llama.cpp. The graph is that of
//! `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
