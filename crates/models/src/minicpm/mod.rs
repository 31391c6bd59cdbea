//! MiniCPM 1 and 2 (OpenBMB; class `MiniCPMForCausalLM`): architecture `minicpm`.
//!
//! A Llama decoder with multipliers of muP: embedding times `scale_emb`, residual branches times
//! `scale_depth / sqrt(layers)`, logits divided by `hidden_size / dim_model_base`. GQA or MHA, RoPE
//! in interleaved layout (the rows of Q and K are permuted), optional LongRoPE factors, RMS
//! pre-norm, SwiGLU FFN.
//!
//! Files without the keys use the multipliers of the first models. Source: arXiv 2404.06395.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
