//! Gemma 4 by Google.
//!
//! Grouped-query attention with RMS QK-norm, a norm of values without weights and softmax scale 1.
//! Layers with a sliding window and layers with full attention have different head dimensions and
//! KV head counts; in the latter the value may be the key projection, and part of each head has no
//! RoPE (`rope_freqs` holds 1e30 there). NeoX layout, a base frequency for each kind. The last
//! `attention.shared_kv_layers` layers share the KV cache of earlier ones. Sandwich RMS norms,
//! GeGLU; some models have a softmax MoE beside the dense FFN, whose router reads the residual
//! stream. Per-layer input embeddings and a scale of the layer output are optional. Sources: class
//! `Gemma4ForCausalLM`, llama.cpp's `src/models/gemma4.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
