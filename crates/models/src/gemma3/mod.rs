//! Gemma 3 (arXiv 2503.19786) by Google.
//!
//! Grouped-query attention with RMS QK-norm per head. Five of six layers have a sliding window and
//! a base frequency of their own (`rope.freq_base_swa`); RoPE scaling applies to the layers with
//! full attention only. NeoX layout. Sandwich RMS norms, stored with 1 added. GeGLU. Scaled
//! embeddings as in `gemma`. The 27B model (62 layers) scales attention by the hidden size per
//! head, for which files have no key. Sources: class `Gemma3ForCausalLM`, llama.cpp's
//! `src/models/gemma3.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
