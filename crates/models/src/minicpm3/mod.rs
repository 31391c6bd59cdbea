//! MiniCPM3 (OpenBMB; class `MiniCPM3ForCausalLM`): architecture `minicpm3`.
//!
//! Multi-head latent attention (MLA) with low-rank Q and KV; keys and values are expanded by one
//! matrix (`attn_kv_b`). RoPE in NeoX layout on the rotary part of each head, with LongRoPE
//! factors. RMS pre-norm, SwiGLU FFN.
//!
//! The multipliers of MiniCPM have no keys: embedding times 12, residual branches times `1.4 /
//! sqrt(layers)`, logits times `256 / hidden_size`. The attention graph is that of `deepseek2`.
//! Source: `MiniCPM3ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
