//! Qwen3-Next of Alibaba Cloud.
//!
//! - Layers: linear attention by the gated delta rule (Gated DeltaNet, arXiv:2412.06464) in most,
//!   full attention in one of `full_attention_interval`.
//! - Full attention: GQA with a sigmoid output gate for each query head and RMS QK-norm.
//! - Linear attention: short causal convolution, L2-normalized queries and keys, value heads that
//!   share key heads, one decay for each head, RMS norm and SiLU gate of the output.
//! - RoPE: NeoX layout on a quarter of each head.
//! - Norms: RMS pre-norm, stored as the difference from 1.
//! - MoE in all layers: softmax router, SwiGLU experts, a shared expert with a sigmoid gate. MTP
//!   layers come last.
//!
//! Class `Qwen3NextForCausalLM` in `transformers`; `qwen3next.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
