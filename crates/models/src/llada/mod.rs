//! LLaDA, a masked diffusion language model (class `LLaDAModelLM`): architecture `llada`.
//!
//! A Llama decoder without a causal mask: MHA or GQA, RoPE in interleaved layout, RMS pre-norm,
//! SwiGLU FFN. Attention is bidirectional and nothing is cached between runs, since tokens are
//! unmasked in any order. `diffusion.shift_logits` is false: the logits at a position are for that
//! position.
//!
//! The graph is that of `llama-embed`. Source: arXiv 2502.09992.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
