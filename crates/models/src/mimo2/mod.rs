//! MiMo-V2 (Xiaomi; classes `MiMoV2FlashForCausalLM` and `MiMoV2ForCausalLM`): architecture
//! `mimo2`.
//!
//! GQA with optional attention sinks and values narrower than keys. A flag per layer tells which
//! layers use sliding-window attention (SWA); these may have another number of KV heads and have
//! their own RoPE base frequency. Partial RoPE in NeoX layout. The attention output may have a
//! factor (`attention.value_scale`).
//!
//! RMS pre-norm. Layers have a dense SwiGLU FFN or MoE with a sigmoid router and selection bias.
//! Multi-token prediction (MTP) layers follow the trunk; their number is read from the checkpoint's
//! tensor names.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
