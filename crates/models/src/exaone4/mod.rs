//! EXAONE 4 (arXiv 2507.11407) and EXAONE 4.5 by LG AI Research.
//!
//! Grouped-query attention with RMS QK-norm per head. Post-norm: RMS norms of the outputs of
//! attention and FFN, none of their inputs. Models with a sliding window have it in three of four
//! layers and RoPE in these only; models without a window have RoPE in all layers. NeoX layout,
//! Llama 3 scaling (`rope_freqs`). SwiGLU FFN. Multi-token prediction layers of 4.5 are converted
//! and not run. Sources: class `Exaone4ForCausalLM`, llama.cpp's `src/models/exaone4.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
