//! GPT-NeoX 20B and Pythia (EleutherAI; class `GPTNeoXForCausalLM`): architecture `gptneox`.
//!
//! Multi-head attention (MHA) with biases over a fused QKV matrix, which checkpoints store head by
//! head. Partial RoPE in NeoX layout: `rotary_pct` of each head is rotated, 25 % by default. Layer
//! norms with bias before attention and FFN; with `use_parallel_residual` both read the input of
//! the layer. The FFN has biases and no gate; its activation is GELU. Embedding and LM head are not
//! tied.
//!
//! Source: arXiv 2204.06745 (GPT-NeoX) and `GPTNeoXForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
