//! Command R and Command R+ by Cohere.
//!
//! Grouped-query attention with RoPE in interleaved layout; models of 64 layers and more have a
//! layer norm of queries and keys with weights per head. Attention and FFN are parallel: both read
//! the same layer norm (without bias). SwiGLU FFN. Logits are multiplied by `logit_scale`; the
//! output projection is tied to the embedding. Sources: class `CohereForCausalLM`, llama.cpp's
//! `src/models/command-r.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
