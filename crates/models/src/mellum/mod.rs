//! Mellum 2 (JetBrains; class `MellumForCausalLM`): architecture `mellum`.
//!
//! GQA with QK-norm. By default three of four layers, all but the last, use sliding-window
//! attention (SWA) with their own RoPE base frequency and without RoPE scaling. RoPE in NeoX
//! layout. RMS pre-norm, LM head not tied.
//!
//! Every layer is MoE: softmax router, normalized weights, SwiGLU experts, no shared expert.
//! Source: `MellumForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
