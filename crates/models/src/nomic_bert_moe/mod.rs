//! Nomic BERT with MoE layers, of Nomic AI (nomic-embed-text v2, arXiv:2502.07972).
//!
//! - Attention: MHA with a fused QKV matrix, without causal mask.
//! - RoPE: NeoX layout.
//! - Norms: post-norm layer norms, and one of the embeddings.
//! - FFN: GELU without gate; every `moe_every_n_layers` layers an MoE with such experts.
//!
//! This crate has no converter for it. Jina Embeddings v3 (`jina-bert-v3`) has the same graph.

#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
