//! Qwen3.5 of Alibaba Cloud: the MoE models.
//!
//! - Attention: as in `qwen35`: the gated delta rule in most layers, gated full attention in the
//!   others.
//! - RoPE: NeoX layout on a quarter of each head, with M-RoPE sections.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: softmax router with renormalized weights, SwiGLU experts, a shared expert
//!   with a sigmoid gate.
//! - MTP layers come last.
//!
//! Class `Qwen3_5MoeForConditionalGeneration` in `transformers`; `qwen35moe.cpp` in llama.cpp. The
//! graph is that of `qwen3next`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
