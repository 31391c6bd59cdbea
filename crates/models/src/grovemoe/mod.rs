//! GroveMoE (class `GroveMoeForCausalLM`): architecture `grovemoe`.
//!
//! GQA with RMS norms of each head's queries and keys (QK-norm), RoPE in NeoX layout, RMS pre-norm.
//! Every layer is MoE with a softmax router and SwiGLU experts. Experts form groups of two that
//! share a smaller expert (`ffn_*_chexps`): for each selected expert, the output of its group's
//! expert is added, times the weight of the selected expert and a constant (0.05).
//!
//! llama.cpp feeds the group experts the output of the routed experts; here they read the input of
//! the MoE layer, as in the original code. Source: arXiv 2508.07785.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
