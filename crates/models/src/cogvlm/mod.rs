//! CogVLM by Zhipu AI (arXiv 2311.03079): a Llama decoder with visual expert weights.
//!
//! Attention with a fused QKV projection, RoPE in NeoX layout, RMS pre-norms and SwiGLU FFN. Each
//! layer has a second set of attention and FFN projections for image positions (`vis_attn_qkv`,
//! `vis_attn_output`, `vis_gate`, `vis_up`, `vis_down`). The graph is that of `qwen` and runs text
//! positions only; the vision encoder is an mmproj file. Source: class `CogVLMForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
