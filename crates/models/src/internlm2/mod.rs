//! InternLM2 (Shanghai AI Laboratory; class `InternLM2ForCausalLM`): architecture `internlm2`.
//!
//! A Llama decoder: GQA, RoPE in interleaved layout, RMS pre-norm, SwiGLU FFN, LM head not tied.
//! Only the checkpoints differ: Q, K and V are one matrix (`wqkv`) with the rows of each KV head
//! together, its queries first. The conversion splits it and permutes the rows of Q and K.
//!
//! InternLM3 is converted as `llama`. The graph is that of `llama`. Source: arXiv 2403.17297.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
