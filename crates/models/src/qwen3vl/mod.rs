//! Qwen3-VL of Alibaba Cloud: the dense text model, also of Qwen3-ASR.
//!
//! - Attention: GQA with RMS QK-norm for each head.
//! - RoPE: NeoX layout with M-RoPE sections for time, height and width; text has the same position
//!   in all sections.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - DeepStack: the first `n_deepstack_layers` layers get features of the vision encoder, which is
//!   in the mmproj file.
//!
//! Class `Qwen3VLForConditionalGeneration` in `transformers`; `qwen3vl.cpp` in llama.cpp. The graph
//! is that of `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
