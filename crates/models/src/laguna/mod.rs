//! Laguna (class `LagunaForCausalLM`): architecture `laguna`.
//!
//! GQA with QK-norm and a softplus gate on the attention output, per head or per element. The
//! number of query heads may differ between layers. By default, all but every fourth layer,
//! beginning with the first, use sliding-window attention (SWA); these have their own RoPE base
//! frequency and rotary dimensions, without RoPE scaling. RoPE in NeoX layout, YaRN in the
//! full-attention layers. RMS pre-norm.
//!
//! After leading dense layers, MoE with a sigmoid router, selection bias, normalized and scaled
//! weights, and a shared expert. Source: `LagunaForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
