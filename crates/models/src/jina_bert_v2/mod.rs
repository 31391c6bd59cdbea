//! Jina Embeddings v2 (Jina AI; classes `JinaBertModel` and `JinaBertForMaskedLM`): architecture
//! `jina-bert-v2`.
//!
//! A BERT encoder with symmetric ALiBi (maximum bias 8, not stored in a key) in place of learned
//! positions, and a GELU-gated FFN (GEGLU). MHA with biases; layer norms with bias after attention
//! and FFN (post-norm). The model for code also has layer norms of queries and keys (QK-norm) over
//! all heads and a second attention norm.
//!
//! The output are hidden states, pooled to an embedding. Source: arXiv 2310.19923.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
