//! GLM 5.3 by Zhipu AI.
//!
//! A hybrid: most layers have Kimi Delta Attention (gated delta rule, `attention.head_count_kv` 0);
//! the others have multi-head latent attention (MLA) without RoPE to blocks of tokens that an
//! indexer selects. The indexer pools the keys of `attention.indexer.kpool` tokens by a gated sum
//! with learned positions; layers of type `shared` reuse the selection of an earlier layer. The
//! residual stream consists of several hyper-connection streams with Sinkhorn normalization (arXiv
//! 2512.24880), averaged at the end. RMS norms. SwiGLU with an optional clamp: leading dense
//! layers, then a MoE with a sigmoid router, a selection bias, expert groups and shared experts.
//! Multi-token prediction layers are converted and not run. Source: class
//! `Glm5NextForConditionalGeneration`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
