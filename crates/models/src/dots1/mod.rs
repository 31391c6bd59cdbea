//! dots.llm1 by rednote (arXiv 2506.05767).
//!
//! Attention with RMS QK-norm per head and RoPE in NeoX layout. RMS pre-norms. SwiGLU: leading
//! dense layers, then a MoE with a sigmoid router, a selection bias (`exp_probs_b`), optional
//! expert groups and shared experts; `expert_weights_norm` and `expert_weights_scale` normalize and
//! scale the weights. The output projection is not tied to the embedding. `hy_v3` and `minimax-m2`
//! share the graph. Sources: class `Dots1ForCausalLM`, llama.cpp's `src/models/dots1.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
