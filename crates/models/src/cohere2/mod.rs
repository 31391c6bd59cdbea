//! Command R7B (Cohere 2) by Cohere.
//!
//! Grouped-query attention. Of four layers three have a sliding window and RoPE in interleaved
//! layout; the fourth has full attention without RoPE. Attention and FFN are parallel: both read
//! the same layer norm (without bias), and their outputs are added to the residual stream together.
//! SwiGLU FFN. Logits are multiplied by `logit_scale`; the output projection is tied to the
//! embedding. Sources: class `Cohere2ForCausalLM`, llama.cpp's `src/models/cohere2.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
