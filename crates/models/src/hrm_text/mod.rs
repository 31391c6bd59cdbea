//! HRM-Text, a hierarchical reasoning model (class `HrmTextForCausalLM`): architecture `hrm_text`.
//!
//! Two stacks of layers run recurrently. In each of `hrm.h_cycles` cycles, the fast stack L runs
//! `hrm.l_cycles` times on the sum of both states, then the slow stack H runs once on that sum.
//! Stack L holds the layers before `hrm.layers_per_stack`, stack H the layers behind; `block_count`
//! is the number of layer runs.
//!
//! Attention has a sigmoid gate on its output; RoPE in NeoX layout; SwiGLU FFN. RMS norms have no
//! weights and stand before attention and FFN and at the end of a stack. The embedding has a
//! multiplier.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
