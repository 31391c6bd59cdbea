//! Granite 3 MoE (IBM; classes `GraniteMoeForCausalLM` and `GraniteMoeSharedForCausalLM`):
//! architecture `granitemoe`.
//!
//! As `granite` (GQA, RoPE in interleaved layout, RMS pre-norm, multipliers), with a mixture of
//! experts in every layer: softmax router, normalized weights of the selected experts, SwiGLU
//! experts. The class `GraniteMoeSharedForCausalLM` adds a shared expert; a model with no routed
//! experts has the shared expert as its dense FFN.
//!
//! Checkpoints stack all experts of a layer, gate above up projection (`input_linear`). The graph
//! is that of `granite`. Source: both classes in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
