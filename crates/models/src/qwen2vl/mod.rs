//! Qwen2-VL and Qwen2.5-VL of Alibaba Cloud (arXiv:2409.12191, arXiv:2502.13923): the text model,
//! also of Qwen2.5-Omni.
//!
//! - Attention: GQA with biases of queries, keys and values.
//! - RoPE: NeoX layout with M-RoPE sections for time, height and width; text has the same position
//!   in all sections.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - The vision encoder is in the mmproj file.
//!
//! Class `Qwen2VLForConditionalGeneration` in `transformers`; `qwen2vl.cpp` in llama.cpp. The graph
//! is that of `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
