//! Gemma (arXiv 2403.08295) by Google: the first generation.
//!
//! Multi-head attention (7B) or multi-query attention (2B), RoPE in NeoX layout, RMS pre-norms
//! whose weights are stored with 1 added, GeGLU (tanh approximation). Token embeddings are scaled
//! by the square root of the hidden size, and the output projection is tied to them. Heads have a
//! dimension of their own (`attention.key_length`). Sources: class `GemmaForCausalLM`, llama.cpp's
//! `src/models/gemma.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
