//! Maincoder (class `MaincoderForCausalLM`): architecture `maincoder`.
//!
//! A Llama decoder with RMS norms of each head's queries and keys (QK-norm) after RoPE. GQA; RoPE
//! in interleaved layout, without a permutation of the rows of Q and K; RMS pre-norm; SwiGLU FFN;
//! LM head possibly tied.
//!
//! The graph is shared with the Hunyuan models, which use RoPE in NeoX layout.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
