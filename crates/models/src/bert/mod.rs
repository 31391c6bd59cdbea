//! BERT (arXiv 1810.04805), RoBERTa (arXiv 1907.11692), XLM-RoBERTa (arXiv 1911.02116), CamemBERT
//! and DistilBERT (arXiv 1910.01108).
//!
//! Bidirectional encoders: multi-head attention with biases, learned position embeddings, token
//! type (segment) embeddings except in DistilBERT, and a layer norm of the embedding. Post-norm:
//! layer norm after each residual addition. FFN without a gate, with GELU. The output is the hidden
//! states, pooled as `pooling_type` says; sequence classifiers have a dense tanh layer `cls` and
//! the projection `cls.output`. Position rows of RoBERTa begin after the padding token's id.
//! Source: `src/models/bert.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod distilbert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
