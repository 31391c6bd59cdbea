//! Falcon 7B, 40B and 180B (arXiv 2311.16867) by the Technology Innovation Institute.
//!
//! Multi-query attention (7B) or grouped-query attention (40B, 180B) with a fused QKV projection
//! and RoPE in NeoX layout. Attention and FFN are parallel: they read one layer norm, or two
//! (`attn_norm_2` for attention, `attn_norm` for the FFN). Layer norms have biases, linear layers
//! none. FFN without a gate, with GELU. Checkpoints store QKV by group; conversion stores all
//! queries, then keys, then values (`tensor_data_layout` is `jploski`). Sources: class
//! `FalconForCausalLM`, llama.cpp's `src/models/falcon.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
