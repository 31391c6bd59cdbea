//! The encoder of T5, mT5 and UMT5 alone, as embedding model or text encoder.
//!
//! - Attention: bidirectional MHA without scaling of the scores.
//! - Positions: a bias for each bucket of relative distance, of the first layer; UMT5 has one for
//!   each layer.
//! - Norms: RMS pre-norm.
//! - FFN: ReLU, or GeGLU (tanh approximation).
//! - Output: hidden states, or pooled embeddings.
//!
//! Class `T5EncoderModel` in `transformers`. Layers are those of `t5`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
