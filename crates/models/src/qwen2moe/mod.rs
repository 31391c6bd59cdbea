//! Qwen1.5-MoE and Qwen2-MoE of Alibaba Cloud (arXiv:2407.10671).
//!
//! - Attention: GQA with biases of queries, keys and values.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: softmax router, whose weights are not renormalized unless a key says so;
//!   SwiGLU experts; a shared expert with a sigmoid gate.
//!
//! Class `Qwen2MoeForCausalLM` in `transformers`; `qwen2moe.cpp` in llama.cpp. OLMoE and LLaDA-MoE
//! have the same graph.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
