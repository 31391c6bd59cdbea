//! Ministral 3 and Mistral Small 3.1 and later (Mistral AI; classes `Ministral3ForCausalLM` and
//! `Mistral3ForConditionalGeneration`): architecture `mistral3`.
//!
//! As `llama`: GQA, RoPE in interleaved layout (the rows of Q and K are permuted), RMS pre-norm,
//! SwiGLU FFN. Ministral 3 uses YaRN and an attention temperature that grows with the position
//! beyond the original context (`llama_4_scaling_beta`).
//!
//! `consolidated` reads checkpoints in Mistral's and Meta's own layout (`params.json`), also of
//! other architectures. Source: `Ministral3ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod consolidated;
#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
