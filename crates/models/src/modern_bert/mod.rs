//! ModernBERT of Answer.AI and LightOn (arXiv:2412.13663): bidirectional text encoders.
//!
//! - Attention: MHA with a fused QKV matrix. Symmetric sliding window in all layers but the first
//!   of each three, unless `attention.sliding_window_pattern` lists other layers.
//! - RoPE: NeoX layout in all layers; sliding-window layers may have a base frequency of their own.
//! - Norms: pre-norm layer norms without bias; the first layer has no norm before attention.
//! - FFN: GeGLU, with gate and up projection in one matrix.
//! - Classification models add a head with a dense layer and a norm.
//!
//! Class `ModernBertModel` in `transformers`; `modern-bert.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
