//! Granite Switch (IBM; class `GraniteSwitchForCausalLM`): architecture `graniteswitch`.
//!
//! A dense Granite with built-in LoRA adapters of Q, K, V, the attention output and the FFN.
//! Control tokens in the text activate an adapter for the tokens that follow; another token's
//! embedding stands in for theirs. Adapter 0, all zeros, applies before any activation.
//!
//! The graph finds the adapter of a token with an attention head of one dimension: the keys of
//! control tokens are larger by `adapters.router_gain`, and the values are adapter numbers.
//! `matmul_id` then selects the two LoRA matrices. All else is as in `granite`; checkpoints count
//! the switch as one more layer.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
