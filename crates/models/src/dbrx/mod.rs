//! DBRX by Databricks.
//!
//! Grouped-query attention with a fused QKV projection whose output is clamped
//! (`attention.clamp_kqv`), and RoPE in NeoX layout. Layer norms without bias before attention and
//! before the experts; the second has the tensor name `attn_output_norm`. Every layer is a MoE with
//! gated experts, a softmax router and normalized weights of the selected experts, without shared
//! experts. The output projection is not tied to the embedding. Sources: class `DbrxForCausalLM`,
//! llama.cpp's `src/models/dbrx.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
