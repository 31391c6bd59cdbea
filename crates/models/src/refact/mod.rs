//! Refact 1.6B of Refact.ai: a code completion model.
//!
//! - Attention: MQA with ALiBi (maximum bias 8, without a key).
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU; its width follows from the embedding length (8/3, rounded up to a multiple of
//!   256).
//! - Conversion: checkpoints fuse keys with values, and the gate with the up projection.
//!
//! Class `GPTRefactForCausalLM`; `refact.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
