//! GPT-J 6B (EleutherAI; class `GPTJForCausalLM`): architecture `gptj`.
//!
//! Multi-head attention (MHA) without biases. RoPE in interleaved layout rotates the first
//! `rotary_dim` dimensions of each head. Attention and FFN are parallel and read the output of one
//! shared layer norm; the final norm is a layer norm too. The FFN has biases and no gate; its
//! activation is GELU in the tanh approximation. The LM head has a bias.
//!
//! llama.cpp has no implementation. The keys follow the GGUF specification; tensors are named as in
//! phi2, which has the same layout. Source: `GPTJForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
