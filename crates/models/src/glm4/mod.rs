//! GLM 4 (0414), GLM 4.1V and GLM OCR by Zhipu AI.
//!
//! Grouped-query attention with optional QKV biases and RoPE over half of each head, in interleaved
//! layout; vision models (M-RoPE sections) have the NeoX layout, to which conversion permutes query
//! and key rows. Sandwich RMS norms around attention and FFN. SwiGLU FFN whose gate and up
//! projection are one matrix. Multi-token prediction layers of GLM OCR are converted and not run.
//! Sources: class `Glm4ForCausalLM`, llama.cpp's `src/models/glm4.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
