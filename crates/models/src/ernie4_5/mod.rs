//! ERNIE 4.5, dense models, by Baidu.
//!
//! Grouped-query attention with optional biases, RoPE in interleaved layout over whole heads, RMS
//! pre-norms, SwiGLU FFN. The output projection may be tied to the embedding. The checkpoint is
//! already in interleaved layout, so that rows are not permuted. The graph is that of `llama`.
//! Source: class `Ernie4_5ForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
