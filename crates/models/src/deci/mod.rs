//! DeciLM by Deci AI, and Nvidia's Nemotron models found by neural architecture search (Llama
//! Nemotron 51B, Super, Ultra).
//!
//! A Llama decoder whose layers differ: grouped-query attention with another number of KV heads in
//! each layer, a single linear projection in the place of attention, or no attention; an FFN of
//! another size, or none. RoPE in interleaved layout (query and key rows are permuted on
//! conversion), with Llama 3 scaling as `rope_freqs`. RMS pre-norms, SwiGLU.
//! `attention.head_count`, `attention.head_count_kv` and `feed_forward_length` are arrays with a
//! value per layer. Sources: class `DeciLMForCausalLM`, llama.cpp's `src/models/deci.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
