//! Qwen 3.8 Flash of Alibaba Cloud.
//!
//! - Layers: those of `qwen35moe`: the gated delta rule (with a sigmoid output gate) in most
//!   layers, gated full attention in the others, MoE with a shared expert in all.
//! - Hyper-connections (arXiv:2409.19606) instead of pre-norms: low-rank matrices mix the residual
//!   streams into the input of attention and FFN, and inject their outputs into all streams.
//! - Indexer: full attention is restricted to blocks of tokens, chosen by the mean key of each
//!   block.
//! - N-gram embeddings: one layer adds rows of a hashed n-gram table (`per_layer_token_embd`) to
//!   the streams.
//! - RoPE: NeoX layout on a quarter of each head, with M-RoPE sections. MTP layers are left out.
//!
//! Class `Qwen4ExpForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
