//! EAGLE 3 (arXiv 2503.01840): draft models of one Llama layer for speculative decoding.
//!
//! The draft reads hidden states of three target layers (`target_layers`), joined by the projection
//! `fc`. Its layer attends to the concatenation of the normalized token embedding and the
//! normalized hidden state, so that the QKV projections have twice the input width; two norms stand
//! before attention (`attn_norm`, `attn_norm_2`). RoPE in interleaved layout (rows are permuted on
//! conversion), RMS norms, SwiGLU FFN. `d2t` lists the target ids of a reduced draft vocabulary.
//! Source: class `LlamaForCausalLMEagle3`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
