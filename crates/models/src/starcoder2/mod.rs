//! StarCoder 2 of BigCode (arXiv:2402.19173).
//!
//! - Attention: GQA with biases; a sliding window in all layers if it is shorter than the context.
//! - RoPE: NeoX layout.
//! - Norms: pre-norm layer norms with bias.
//! - FFN: GELU (tanh approximation) without gate, with biases.
//!
//! Class `Starcoder2ForCausalLM` in `transformers`; `starcoder2.cpp` in llama.cpp. CodeShell has
//! the same graph.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
