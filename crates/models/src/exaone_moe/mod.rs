//! K-EXAONE by LG AI Research: EXAONE with a mixture of experts.
//!
//! Grouped-query attention with RMS QK-norm per head; three of four layers have a sliding window
//! and RoPE in NeoX layout, the fourth has full attention without RoPE. RMS pre-norms. SwiGLU:
//! leading dense layers, then a MoE with a sigmoid router, a selection bias, expert groups and
//! shared experts. Multi-token prediction layers are converted and not run. Source: class
//! `ExaoneMoEForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
