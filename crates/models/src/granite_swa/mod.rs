//! Granite with sliding-window attention, dense and MoE (IBM; classes `GraniteSWAForCausalLM` and
//! `GraniteMoeSWAForCausalLM`): architecture `granite_swa`.
//!
//! GQA with attention sinks. A flag per layer tells which layers use sliding-window attention
//! (SWA); without `layer_types` these are all but every fourth layer, beginning with the first.
//! Another flag per layer (`attention.rope_pattern`) tells which layers use RoPE (interleaved
//! layout). The multipliers, RMS pre-norm and SwiGLU FFN are those of `granite`.
//!
//! MoE models keep gate and up projections of the experts fused in `ffn_gate_up_exps`, and may have
//! a shared expert, fused too.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
