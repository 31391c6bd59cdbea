//! Mamba 2 (class `Mamba2ForCausalLM`): architecture `mamba2`.
//!
//! Every layer is a selective state-space model (SSM) with heads: one projection gives gate, x, B,
//! C and time step; the causal convolution covers x, B and C; decay and skip are one number per
//! head; the gated output is RMS-normalized group by group. There are no attention, FFN and
//! positions. RMS norm before each layer and before the LM head.
//!
//! The code is shared with `mamba`. Source: arXiv 2405.21060.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
