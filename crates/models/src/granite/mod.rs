//! Granite 3, dense (IBM; class `GraniteForCausalLM`): architecture `granite`.
//!
//! A Llama decoder with four multipliers: of the embedding, of what attention and FFN add to the
//! residual stream, of the attention logits (in place of `1/sqrt(head_dim)`), and a divisor of the
//! logits. GQA; RoPE in interleaved layout, for which the conversion permutes the rows of Q and K.
//! With `rope.scaling.finetuned` set to false, positions are not encoded (NoPE). RMS pre-norm and
//! SwiGLU FFN.
//!
//! The graph is shared with `granitemoe`. Source: `GraniteForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
