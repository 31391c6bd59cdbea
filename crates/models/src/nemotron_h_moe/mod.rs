//! Nemotron-H with MoE layers, of NVIDIA (Nemotron 3), and its Puzzle variants.
//!
//! - Layers: one norm and one mixer each: a Mamba 2 SSM, attention without positional encoding, or
//!   an MoE.
//! - MoE: sigmoid router with a selection bias, experts with squared ReLU and without gate, one
//!   shared expert. Latent MoE: a projection to `moe_latent_size` before the routed experts, and
//!   one back after them.
//! - Puzzle: expert width and number of used experts differ between layers; MTP layers are left
//!   out.
//! - Norms: RMS pre-norm.
//!
//! Classes `NemotronHForCausalLM` and `NemotronHPuzzleForCausalLM`. The graph is that of
//! `nemotron_h`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
