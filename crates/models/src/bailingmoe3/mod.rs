//! Ling, third generation (Bailing MoE V3), by Ant Group's inclusionAI.
//!
//! A hybrid: most layers have Kimi Delta Attention (gated delta rule with a decay per channel and
//! short convolutions of queries, keys and values); the last layer of each group of
//! `layer_group_size` has multi-head latent attention (MLA) with a sigmoid gate per head.
//! `attention.head_count_kv` is 0 in KDA layers. Decay and output gate of KDA are full-rank
//! projections, and the decay has a lower bound. MLA has RoPE in interleaved layout; vision models
//! (M-RoPE sections) have the NeoX layout. RMS pre-norms. SwiGLU: leading dense layers, then a MoE
//! with expert groups, a selection bias, shared experts and an optional clamp of the gated
//! activation per layer. Multi-token prediction layers are converted and not run. Source: class
//! `BailingMoeV3ForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
