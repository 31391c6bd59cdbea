//! NeoBERT (arXiv:2502.19587): bidirectional text encoders.
//!
//! - Attention: MHA with a fused QKV matrix, without causal mask.
//! - RoPE: interleaved layout, base frequency 10000.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU, with gate and up projection in one matrix of two thirds of `intermediate_size`.
//! - Pooling: CLS; classification models add a head.
//!
//! Classes `NeoBERT` and `NeoBERTForSequenceClassification`; `neo-bert.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
