//! DeepSeek V2 (arXiv 2405.04434) and V3 (arXiv 2412.19437), Kimi K2 and Kimi VL, Youtu, GLM 4.7
//! Flash.
//!
//! Multi-head latent attention (MLA): queries and KV are low-rank projections with an RMS norm
//! each, and one RoPE key is shared by all heads. Files hold `kv_b_proj` split into `attn_k_b` and
//! `attn_v_b`, so that the graph attends to the latent with one KV head; older files have
//! `attn_kv_b` and are attended to per head. RoPE in interleaved layout, with YaRN whose `mscale`
//! multiplies the softmax scale. RMS pre-norms. SwiGLU: leading dense layers, then a MoE with
//! expert groups and shared experts; the router is softmax (V2) or sigmoid with a selection bias
//! (V3). Multi-token prediction layers are kept for GLM 4.7 Flash only. Sources: class
//! `DeepseekV3ForCausalLM`, llama.cpp's `src/models/deepseek2.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
