//! Gemma 2 (arXiv 2408.00118) by Google.
//!
//! Grouped-query attention with soft-capped attention scores (50) and final logits (30). Every
//! other layer has a sliding window, beginning with the first. RoPE in NeoX layout in all layers.
//! Sandwich RMS norms around attention and FFN, stored with 1 added. GeGLU. Scaled, tied embeddings
//! as in `gemma`. The 27B model (46 layers) scales attention by the hidden size per head instead of
//! the head dimension, for which files have no key. Sources: class `Gemma2ForCausalLM`, llama.cpp's
//! `src/models/gemma2.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
