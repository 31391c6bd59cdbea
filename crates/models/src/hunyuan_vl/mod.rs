//! Text model of Hunyuan vision-language models (Tencent; class
//! `HunYuanVLForConditionalGeneration`): architecture `hunyuan_vl`.
//!
//! As `hunyuan-dense` (GQA, QK-norm after RoPE in NeoX layout, RMS pre-norm, SwiGLU FFN), with
//! XD-RoPE: positions have four dimensions, and `rope.dimension_sections` tells how many rotary
//! dimensions each has. For text all four are equal. The factor of NTK-aware scaling is stored as
//! `rope.scaling.alpha`, so that the runtime multiplies the base frequency by `alpha^(d/(d-2))`.
//!
//! The vision encoder is converted to an mmproj file.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
