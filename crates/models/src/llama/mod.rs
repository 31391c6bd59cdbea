//! Llama 1 to 3, Mistral, Mixtral and models of the same form (Meta, Mistral AI and others; class
//! `LlamaForCausalLM` and many more): architecture `llama`.
//!
//! GQA (MHA in the first models), RoPE in interleaved layout: the conversion permutes the rows of Q
//! and K of Hugging Face checkpoints, which are in NeoX layout. RoPE scaling linear, YaRN, or Llama
//! 3 (stored as factors in `rope_freqs`). RMS pre-norm, SwiGLU FFN; LM head possibly tied. Mistral
//! 7B uses sliding-window attention.
//!
//! Mixtral has MoE in every layer: softmax router, normalized weights, no shared expert. Source:
//! arXiv 2302.13971 (Llama), 2310.06825 (Mistral), 2401.04088 (Mixtral).

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
#[cfg(feature = "convert")]
pub(crate) mod internlm3;
pub(crate) mod schema;
