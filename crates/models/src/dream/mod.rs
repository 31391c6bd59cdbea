//! Dream 7B: a masked diffusion language model initialized from Qwen 2.5.
//!
//! The layers are those of `qwen2`: grouped-query attention with QKV biases, RoPE in NeoX layout,
//! RMS pre-norms, SwiGLU FFN. Attention is bidirectional (`attention.causal` is false), and
//! generation unmasks the mask token (`tokenizer.ggml.mask_token_id`) in any order. Source: class
//! `DreamModel`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
