//! Spark X2.5.
//!
//! - Attention: GQA with a sigmoid output gate for each head (`attn_gate`); a sliding window in the
//!   layers that `attention.sliding_window_pattern` lists.
//! - RoPE: NeoX layout; layers with and without a sliding window have their own base frequency and
//!   rotary dimensions.
//! - Norms: RMS pre-norm.
//! - FFN: GeGLU (tanh approximation).
//!
//! Class `Spark2_5ForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
