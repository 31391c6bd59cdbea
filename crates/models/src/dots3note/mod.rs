//! dots 3 by rednote.
//!
//! Multi-head latent attention (MLA) in two forms: layers with a sliding window have latent ranks,
//! head dimensions and a head count of their own; layers with full attention have the DSA indexer
//! of DeepSeek V3.2. Both have a sigmoid gate per head, an RMS norm of the shared RoPE key, and
//! RoPE in interleaved layout (the indexer: NeoX). RMS pre-norms. SwiGLU: leading dense layers,
//! then a MoE with a sigmoid router, a selection bias and shared experts. An optional rescaling of
//! the latents is folded into their norms. The multi-token prediction layer is converted and not
//! run. Source: class `Dots3NoteForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
