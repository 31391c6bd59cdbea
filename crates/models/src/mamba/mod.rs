//! Mamba (classes `MambaForCausalLM` and `MambaLMHeadModel`) and FalconMamba (TII;
//! `FalconMambaForCausalLM`): architecture `mamba`.
//!
//! Every layer is a selective state-space model (SSM): input projection to x and gate, causal
//! convolution, selective scan with a state per channel, SiLU gate, output projection. There are no
//! attention, FFN and positions. RMS norm before each layer and before the LM head.
//!
//! FalconMamba normalizes time step, B and C with RMS norms without weights (`ssm.dt_b_c_rms`).
//! Source: arXiv 2312.00752.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
