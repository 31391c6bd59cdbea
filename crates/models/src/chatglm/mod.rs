//! ChatGLM 3 and the first GLM 4 by Zhipu AI.
//!
//! Multi-query or grouped-query attention with a fused QKV projection with biases (separate
//! projections for the class of `transformers`). RoPE in interleaved layout over half of each head;
//! `rope_ratio` multiplies the base frequency. RMS pre-norms. SwiGLU FFN whose gate and up
//! projection are one matrix. The graph is that of `llama`. Sources: classes `ChatGLMModel` and
//! `GlmForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
