//! RWKV 4 (arXiv:2305.13048).
//!
//! - Time mixing: the WKV recurrence with a decay and a bonus (`time_mix_first`) for each channel,
//!   gated by the sigmoid of the receptance. Token shift interpolates with the previous token by
//!   fixed weights.
//! - Channel mixing: squared ReLU, gated by the sigmoid of the receptance.
//! - Norms: pre-norm layer norms with bias, and one of the embedding.
//! - The residual stream is halved every `rescale_every_n_layers` layers.
//! - No attention, no positional encoding; the state of a layer has a fixed size.
//!
//! llama.cpp does not support version 4: keys follow the GGUF specification, and tensors are named
//! as in `rwkv6`. Class `RwkvForCausalLM` in `transformers`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
