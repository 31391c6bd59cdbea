//! DeepSeek V3.2: DeepSeek V3 with DeepSeek sparse attention (DSA).
//!
//! MLA and MoE are those of `deepseek2`. In addition an indexer scores each pair of tokens with
//! small multi-head queries (from the query LoRA) and one key per token (layer norm, RoPE in NeoX
//! layout; MLA itself has the interleaved layout), and MLA attends to the `attention.indexer.top_k`
//! best keys only. The router is a sigmoid with a selection bias and expert groups. YaRN's `mscale`
//! multiplies the softmax scale. Multi-token prediction layers are converted and not run. Sources:
//! class `DeepseekV32ForCausalLM`, llama.cpp's `src/models/deepseek32.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
