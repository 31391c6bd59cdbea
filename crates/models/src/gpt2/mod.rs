//! GPT-2 (OpenAI; class `GPT2LMHeadModel`) and ruGPT-3 XL (`RuGPT3XLForCausalLM`): architecture
//! `gpt2`.
//!
//! Multi-head attention (MHA) over a fused QKV matrix with biases. Positions are learned embeddings
//! (`position_embd`), added to the token embedding; there is no RoPE. Layer norms with bias stand
//! before attention and FFN (pre-norm) and before the LM head, which may be tied to the token
//! embedding. The FFN has no gate; its activation is GELU in the tanh approximation.
//!
//! The linear layers of `GPT2LMHeadModel` are `Conv1D` modules, whose matrices are transposed in
//! the conversion. The graph is shared with StarCoder (learned positions) and BLOOM (ALiBi).

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
