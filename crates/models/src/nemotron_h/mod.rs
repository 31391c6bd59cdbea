//! Nemotron-H of NVIDIA (arXiv:2504.03624): a hybrid of Mamba 2 and attention.
//!
//! - Layers: one norm and one mixer each, which is a Mamba 2 SSM, attention or an FFN
//!   (`hybrid_override_pattern`).
//! - Attention: GQA without positional encoding.
//! - SSM: Mamba 2 with a grouped RMS norm after the scan.
//! - Norms: RMS pre-norm.
//! - FFN: squared ReLU without gate; the graph also builds the MoE layers of `nemotron_h_moe`.
//!
//! Class `NemotronHForCausalLM`; `nemotron-h.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
