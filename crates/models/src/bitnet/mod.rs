//! BitNet b1.58 (arXiv 2402.17764) by Microsoft: weights with three values.
//!
//! A Llama decoder with grouped-query attention, RoPE in NeoX layout and RMS pre-norms, plus
//! sub-norms before the attention output projection (`attn_sub_norm`) and before the FFN down
//! projection (`ffn_sub_norm`). SwiGLU FFN. The output projection is tied to the embedding.
//! Conversion quantizes each linear layer to {-1, 0, 1} times the mean absolute value of its
//! elements, unless it is ternary already. The graph is that of `qwen`. Source: class
//! `BitnetForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
