//! QRWKV6 of Recursal (arXiv:2505.03005): Qwen2.5 models whose attention is replaced by RWKV 6.
//!
//! - Time mixing: as in `rwkv6` without the bonus of the current token and without group norm; KV
//!   heads are shared as in GQA; keys are multiplied by one minus the decay; sigmoid gate of the
//!   output.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU, as in Qwen2.
//! - No positional encoding; the state of a layer has a fixed size.
//! - Conversion: the parts of `time_mix_w1` and `time_mix_w2` change from the order r, k, v, w, g
//!   to that of RWKV 6.
//!
//! Class `RWKV6Qwen2ForCausalLM`; `rwkv6qwen2.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
