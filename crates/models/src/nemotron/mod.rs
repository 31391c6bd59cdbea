//! Nemotron-4 and Minitron of NVIDIA (arXiv:2402.16819, arXiv:2407.14679).
//!
//! - Attention: GQA.
//! - RoPE: NeoX layout on a part of each head (`partial_rotary_factor`, half unless stated); linear
//!   scaling.
//! - Norms: pre-norm layer norms with bias (`layernorm1p`); checkpoints store weights as the
//!   difference from 1.
//! - FFN: squared ReLU without gate.
//!
//! Class `NemotronForCausalLM` in `transformers`; `nemotron.cpp` in llama.cpp. The graph is that of
//! `jais2`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
