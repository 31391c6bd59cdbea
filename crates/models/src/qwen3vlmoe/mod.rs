//! Qwen3-VL of Alibaba Cloud: the text model with MoE layers, also of Qwen3-Omni.
//!
//! - Attention: GQA with RMS QK-norm for each head.
//! - RoPE: NeoX layout with M-RoPE sections.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: as in `qwen3moe`; Qwen3-VL checkpoints store the matrices of all experts in
//!   one transposed tensor.
//! - DeepStack: the first `n_deepstack_layers` layers get features of the vision encoder.
//!
//! Class `Qwen3VLMoeForConditionalGeneration` in `transformers`; `qwen3vl-moe.cpp` in llama.cpp.
//! The graph is that of `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
