//! Muse Glimmer: the text model of a multimodal model.
//!
//! - Attention: output gate; RMS QK-norm for each head without trained weights, multiplied by one
//!   factor for queries. Sliding window in all layers but the last of each four.
//! - RoPE: interleaved layout, only in sliding-window layers (NoPE in the others).
//! - Norms: RMS sandwich norms, with another epsilon after attention and FFN; the token embedding
//!   is normalized too.
//! - FFN: SwiGLU.
//! - Logits are scaled by `logit_scale` and soft-capped.
//!
//! Class `MuseGlimmerForConditionalGeneration`. Its draft model is part of `dflash`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
