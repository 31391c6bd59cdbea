//! Step 3.5 Flash and Step 3.7 of StepFun: the text model.
//!
//! - Attention: GQA with QK-norm and a sigmoid gate for each head. Sliding-window layers have head
//!   counts of their own.
//! - RoPE: NeoX layout; half of each head in full-attention layers, with Llama 3 scaling by
//!   `rope_freqs`; the whole head in sliding-window layers, with another base frequency.
//! - Norms: RMS pre-norm, stored as the difference from 1.
//! - FFN: SwiGLU in the leading layers, then MoE: sigmoid router with a selection bias, a shared
//!   expert; some layers bound the activations (`swiglu_clamp_exp`, `swiglu_clamp_shexp`).
//! - MTP layers come last.
//!
//! Class `Step3p5ForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
