//! Chameleon by Meta (arXiv 2405.09818): an early-fusion model whose images are tokens of the
//! vocabulary.
//!
//! Grouped-query attention with a layer norm (weights and biases per head) of queries and keys, and
//! RoPE in interleaved layout; rows of query and key projections and of their norms are permuted on
//! conversion. RMS pre-norms, or, with `swin_norm`, RMS norms after attention and after the FFN.
//! SwiGLU FFN. Logits of image tokens (ids 4 to 8195) are suppressed. The image tokenizer (VQ-VAE)
//! is not part of the file. Source: class `ChameleonForConditionalGeneration`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
