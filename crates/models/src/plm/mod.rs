//! PLM 1.8B (arXiv:2503.12167).
//!
//! - Attention: MLA without compression of queries; keys and values are computed from the latent by
//!   one matrix (`attn_kv_b`).
//! - RoPE: interleaved layout on the RoPE part of queries and keys.
//! - Norms: RMS pre-norm.
//! - FFN: squared ReLU without gate.
//!
//! Class `PLMForCausalLM`; `plm.cpp` in llama.cpp. Attention is that of `deepseek2`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
