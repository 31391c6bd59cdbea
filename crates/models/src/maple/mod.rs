//! Maple (class `MapleForCausalLM`): architecture `maple`.
//!
//! GQA with QK-norm; layers with sliding-window attention (SWA) use RoPE in NeoX layout,
//! full-attention layers use no positions (NoPE). RMS pre-norm.
//!
//! Every layer is MoE: softmax router, normalized weights, SwiGLU experts whose gate and up
//! projections are clamped to 7 (`swiglu_clamp_exp`). Keys and tensors are those of `mellum`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
