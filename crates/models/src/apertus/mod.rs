//! Apertus by the Swiss AI Initiative (EPFL, ETH Zurich, CSCS).
//!
//! Grouped-query attention with RMS QK-norm per head. RoPE in NeoX layout in all layers, with Llama
//! 3 scaling as factors in `rope_freqs`. RMS pre-norms. The FFN has no gate: its activation is
//! xIELU (arXiv 2411.13010), whose four parameters of each layer are checkpoint tensors and become
//! the metadata arrays `xielu.alpha_n`, `xielu.alpha_p`, `xielu.beta` and `xielu.eps`. The output
//! projection is not tied to the embedding. Source: class `ApertusForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
