//! Qwen3 of Alibaba Cloud (arXiv:2505.09388): the MoE models, such as Qwen3 30B-A3B and 235B-A22B.
//!
//! - Attention: GQA with RMS QK-norm for each head, without biases.
//! - RoPE: NeoX layout, with YaRN scaling for long contexts.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: softmax router, whose weights are renormalized unless a key says otherwise;
//!   SwiGLU experts; no shared expert.
//!
//! Class `Qwen3MoeForCausalLM` in `transformers`; `qwen3moe.cpp` in llama.cpp. The graph is that of
//! `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
