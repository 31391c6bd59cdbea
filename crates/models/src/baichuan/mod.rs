//! Baichuan and Baichuan 2 by Baichuan Inc.
//!
//! Multi-head attention; the fused projection `W_pack` of checkpoints is split into query, key and
//! value. Models of 40 layers (13B) have ALiBi slopes with a maximum bias of 8, for which files
//! have no key; the others have RoPE in interleaved layout. RMS pre-norms, SwiGLU FFN, a separate
//! output projection. Sources: Baichuan 2 (arXiv 2309.10305), class `BaichuanForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
