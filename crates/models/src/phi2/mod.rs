//! Phi-1, Phi-1.5 and Phi-2 of Microsoft.
//!
//! - Attention: MHA with biases; attention and FFN run in parallel on the same normalized input.
//! - RoPE: NeoX layout on a part of each head (`partial_rotary_factor`).
//! - Norms: pre-norm layer norms with bias, one for each layer.
//! - FFN: GELU (tanh approximation) without gate, with biases; the output matrix has a bias too.
//!
//! Class `PhiForCausalLM` in `transformers`; `phi2.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
