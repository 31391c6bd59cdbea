//! Hunyuan-A13B (Tencent; class `HunYuanMoEV1ForCausalLM`): architecture `hunyuan-moe`.
//!
//! Attention as in `hunyuan-dense`: GQA, QK-norm after RoPE (NeoX layout, NTK-aware scaling). RMS
//! pre-norm. Every layer is MoE: softmax router, normalized weights, SwiGLU experts, and one shared
//! expert of the full FFN width.
//!
//! config.json states expert sizes per layer; the conversion needs equal values in all layers. A
//! tied LM head is dropped. Source: `HunYuanMoEV1ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
