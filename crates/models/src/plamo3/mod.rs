//! PLaMo 3 of Preferred Networks.
//!
//! - Attention: GQA with a fused QKV matrix and QK-norm. Sliding window in all layers but the last
//!   of each eight, unless the key states another period.
//! - RoPE: NeoX layout; YaRN scaling only in layers without a sliding window, without rounding of
//!   its correction range.
//! - Norms: RMS sandwich norms, stored as offsets as in PLaMo 2.
//! - FFN: SwiGLU, with gate and up projection in one matrix.
//!
//! Class `Plamo3ForCausalLM`; `plamo3.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
