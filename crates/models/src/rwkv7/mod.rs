//! RWKV 7 Goose (arXiv:2503.14456).
//!
//! - Time mixing: the WKV recurrence as a generalized delta rule, with a vector decay and an
//!   in-context learning rate by low-rank matrices; values are mixed with those of the first layer;
//!   group norm, bonus and a low-rank gate of the output.
//! - Token shift: fixed interpolation weights, fused in one tensor.
//! - Channel mixing: squared ReLU without gate.
//! - Norms: pre-norm layer norms with bias, and one of the embedding.
//! - No positional encoding; the state of a layer has a fixed size.
//!
//! Class `RWKV7ForCausalLM` (flash-linear-attention); `rwkv7.cpp` in llama.cpp. `arwkv7` shares
//! time mixing.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
