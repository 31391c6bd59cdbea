//! Hunyuan dense models (Tencent; class `HunYuanDenseV1ForCausalLM`): architecture `hunyuan-dense`.
//!
//! GQA; RMS norms of each head's queries and keys (QK-norm) are applied after RoPE. RoPE in NeoX
//! layout with NTK-aware scaling (`dynamic` with `alpha`): the conversion writes the scaled base
//! frequency `base * alpha^(d/(d-2))` and a context of 262144 tokens. RMS pre-norm and SwiGLU FFN.
//!
//! The graph is shared with `hunyuan-moe`, and with `maincoder` but for the RoPE layout. Source:
//! `HunYuanDenseV1ForCausalLM` in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
