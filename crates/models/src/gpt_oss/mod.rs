//! gpt-oss 20B and 120B (OpenAI; class `GptOssForCausalLM`): architecture `gpt-oss`.
//!
//! Grouped-query attention (GQA) with biases and attention sinks, one learned logit per head. Every
//! second layer, beginning with the first, uses sliding-window attention (SWA). RoPE in NeoX layout
//! with YaRN scaling, whose ramp bounds are not rounded (`truncate: false`).
//!
//! RMS pre-norm; `post_attention_norm` is the norm before the FFN. Every layer is a mixture of
//! experts (MoE): the router has a bias, softmax is taken over the selected experts only, and
//! experts are SwiGLU with biases and clamped gates (alpha 1.702, limit 7).
//!
//! Source: model card (arXiv 2508.10925) and `GptOssForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
