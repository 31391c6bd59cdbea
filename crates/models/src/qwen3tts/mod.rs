//! Qwen3-TTS of Alibaba Cloud: the talker, a text model that generates audio codes.
//!
//! - Attention: GQA with RMS QK-norm for each head.
//! - RoPE: with M-RoPE sections.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Vocabulary: text tokens, then audio codes. The converter folds the two-layer text projection
//!   into the embedding. The output matrix covers audio codes only.
//! - The code predictor and the audio decoder are in the mmproj file. The crate has no graph for
//!   it.
//!
//! Class `Qwen3TTSForConditionalGeneration`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
