//! OLMoE of the Allen Institute for AI (arXiv:2409.02060).
//!
//! - Attention: MHA or GQA with QK-norm over the whole rows.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: softmax router whose weights are not renormalized after the top-k
//!   selection; SwiGLU experts of width `feed_forward_length`; no shared expert.
//!
//! Class `OlmoeForCausalLM` in `transformers`; `olmoe.cpp` in llama.cpp. The graph is that of
//! `qwen2moe`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
