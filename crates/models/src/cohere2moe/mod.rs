//! Cohere 2 with a mixture of experts (North Mini) by Cohere.
//!
//! Grouped-query attention, parallel with the FFN: both read the same norm (layer norm, or RMS norm
//! where the file has the RMS epsilon). Layers with a sliding window have RoPE in interleaved
//! layout; layers with full attention have none, except the leading dense layers, which have it
//! always. SwiGLU: dense layers first, then a MoE with a sigmoid router whose weights are not
//! normalized by default; routed and shared experts are averaged. Logits are multiplied by
//! `logit_scale`. Multi-token prediction layers are converted and not run. Source: class
//! `Cohere2MoeForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
