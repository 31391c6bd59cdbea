//! PaddleOCR-VL of Baidu: the text model, which is an ERNIE 4.5.
//!
//! - Attention: GQA.
//! - RoPE: NeoX layout with M-RoPE sections (`rope.dimension_sections`); text has the same position
//!   in all sections, so that the graph is that of `qwen`.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - The converter is that of `ernie4_5`; the vision encoder is in the mmproj file.
//!
//! Class `PaddleOCRVLForConditionalGeneration`; `paddleocr.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
