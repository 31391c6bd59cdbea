//! Text model of Llama 4 Scout and Maverick (Meta; classes `Llama4ForCausalLM` and
//! `Llama4ForConditionalGeneration`): architecture `llama4`.
//!
//! GQA. Three of four layers use RoPE (interleaved layout) and chunked attention of 8192 tokens;
//! after RoPE, queries and keys are RMS-normalized without weights (not in the 128-expert model).
//! Every fourth layer uses no RoPE (NoPE), attends to all tokens and scales queries with an
//! attention temperature. With a window of 0, all layers use RoPE and attend to all tokens.
//!
//! RMS pre-norm. MoE every `interleave_moe_layer_step` layers: sigmoid router whose weights
//! multiply the input of the experts, and a shared expert; SwiGLU. Source: `Llama4ForCausalLM` in
//! transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
