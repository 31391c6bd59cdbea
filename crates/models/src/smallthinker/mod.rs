//! SmallThinker (arXiv:2507.20984).
//!
//! - Attention: GQA. With a sliding window: in all layers but the first of each four.
//! - RoPE: NeoX layout; models with a sliding window have no RoPE in the other layers.
//! - Norms: RMS pre-norm.
//! - MoE in all layers: the router reads the input of the layer, before attention; softmax or
//!   sigmoid, by a key; experts with ReGLU; no shared expert.
//!
//! Class `SmallThinkerForCausalLM`; `smallthinker.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
