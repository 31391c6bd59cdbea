//! Nomic BERT of Nomic AI (nomic-embed-text v1, arXiv:2402.01613): bidirectional text encoders.
//!
//! - Attention: MHA with a fused QKV matrix, without bias.
//! - RoPE: NeoX layout.
//! - Norms: post-norm layer norms, and one of the embeddings.
//! - FFN: SwiGLU without bias.
//! - Context: the length of training, which RoPE scaling of the runtime may extend.
//!
//! Class `NomicBertModel`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
