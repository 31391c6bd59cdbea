//! T5 (arXiv:1910.10683), FLAN-T5, mT5 and UMT5 of Google: encoder and decoder.
//!
//! - Attention: MHA without scaling of the scores; bidirectional in the encoder, causal with
//!   cross-attention in the decoder.
//! - Positions: a bias for each bucket of relative distance, of the first layer of each half; UMT5
//!   has one for each layer.
//! - Norms: RMS pre-norm.
//! - FFN: ReLU, or GeGLU (tanh approximation) in T5 v1.1 and later.
//! - With tied embeddings the hidden states are scaled by 1/sqrt(n_embd) before the output
//!   projection.
//!
//! Class `T5ForConditionalGeneration` in `transformers`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
