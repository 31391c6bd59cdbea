//! RWKV 6 Finch (arXiv:2404.05892).
//!
//! - Time mixing: the WKV recurrence with a matrix state for each head, a data-dependent decay and
//!   a bonus for the current token; group norm for each head and SiLU gate of the output.
//! - Token shift: data-dependent interpolation (ddlerp) by low-rank matrices.
//! - Channel mixing: squared ReLU with a sigmoid gate.
//! - Norms: pre-norm layer norms with bias, and one of the embedding.
//! - Conversion: outputs of later layers are scaled down, as the residual stream is halved every
//!   `rescale_every_n_layers` layers.
//!
//! Class `Rwkv6ForCausalLM`; `rwkv6.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
