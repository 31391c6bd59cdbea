//! Jina Embeddings v3 (Jina AI): architecture `jina-bert-v3`.
//!
//! A BERT encoder with RoPE (NeoX layout) in place of learned positions: MHA, layer norms with bias
//! after attention and FFN (post-norm), FFN without a gate, GELU activation. The output are hidden
//! states, pooled to an embedding.
//!
//! There is no converter; the graph is that of `nomic-bert-moe`. Source: arXiv 2409.10173.

pub(crate) mod schema;
