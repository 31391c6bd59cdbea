//! LLaDA-MoE, a masked diffusion language model (classes `LLaDAMoEModelLM` and `LLaDAMoEModel`):
//! architecture `llada-moe`.
//!
//! Bidirectional attention, since tokens are unmasked in any order; QK-norm, RMS pre-norm. Every
//! layer is MoE with SwiGLU experts of their own FFN width. `diffusion.shift_logits` is false: the
//! logits at a position are for that position. The mask token is that of the class where
//! config.json does not state it.
//!
//! Softmax router, weights not normalized. Tensors are those of `qwen3moe`, the graph is that of
//! `qwen2moe`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
