//! EmbeddingGemma (arXiv 2509.20354) by Google: Gemma 3 as an embedding model.
//!
//! The layers are those of `gemma3`: grouped-query attention with RMS QK-norm, a sliding window in
//! five of six layers, RoPE in NeoX layout with a base frequency for each kind, sandwich RMS norms,
//! GeGLU. Attention is bidirectional by default; the window is symmetric. Hidden states are pooled
//! and pass two dense layers of sentence-transformers (`dense_2`, `dense_3`). Source: class
//! `Gemma3TextModel`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
