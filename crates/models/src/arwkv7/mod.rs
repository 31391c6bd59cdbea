//! ARWKV 7: Qwen 2 with RWKV 7 time mixing in the place of self-attention.
//!
//! The mixer is the WKV recurrence of RWKV 7 with token shift, data-dependent decay, in-context
//! learning rates and value residual mixing with the first layer, all computed by low-rank
//! projections; the output gate is optional (`attention.gate_lora_rank` 0 means none). There is no
//! KV cache and no RoPE. RMS pre-norms and the SwiGLU FFN are those of Qwen 2. Files have no head
//! count; `wkv.head_size` gives the width of a head. Sources: class `RwkvHybridForCausalLM`,
//! llama.cpp's `src/models/arwkv7.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
