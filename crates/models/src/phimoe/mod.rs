//! Phi-3.5-MoE of Microsoft (GRIN, arXiv:2409.12136).
//!
//! - Attention: GQA with biases; a sliding window if the key is not 0.
//! - RoPE: NeoX layout with LongRoPE scaling.
//! - Norms: pre-norm layer norms with bias; the output matrix has a bias too.
//! - MoE in all layers: SwiGLU experts chosen by SparseMixer, which masks logits that are far from
//!   the largest one; weights are not renormalized. llama.cpp computes RMS norms and a softmax
//!   router instead.
//!
//! Class `PhiMoEForCausalLM`. Experts have the tensor names of Mixtral.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
