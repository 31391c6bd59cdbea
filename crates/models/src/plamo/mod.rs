//! PLaMo-13B of Preferred Networks.
//!
//! - Attention: GQA, where `n_shared_head` query heads share a head of keys and values; attention
//!   and FFN run in parallel on the same normalized input.
//! - RoPE: NeoX layout, without scaling.
//! - Norms: RMS pre-norm, one for each layer.
//! - FFN: SwiGLU.
//! - Conversion: query heads are permuted, so that those of one KV head are adjacent.
//!
//! Class `PlamoForCausalLM`; `plamo.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
