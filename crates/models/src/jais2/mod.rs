//! Jais 2 (class `Jais2ForCausalLM`): architecture `jais2`.
//!
//! GQA with biases and RoPE in NeoX layout; layer norms with bias before attention and FFN. The FFN
//! has biases and no gate; its activation is squared ReLU.
//!
//! The graph is shared with `nemotron`. Source: `Jais2ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
