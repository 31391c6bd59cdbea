//! EuroBERT (arXiv 2503.05500) and Jina Embeddings v5: bidirectional encoders with Llama's layer.
//!
//! Grouped-query attention without a causal mask, RoPE in NeoX layout, RMS pre-norms, SwiGLU FFN,
//! no biases. The output is the hidden states, pooled as `pooling_type` says; there is no output
//! projection. Sources: classes `EuroBertModel` and `JinaEmbeddingsV5Model`, llama.cpp's
//! `src/models/eurobert.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
