//! Talkie.
//!
//! - Attention: QK-norm after RoPE without weights, then a gain for each query head.
//! - RoPE: NeoX layout; checkpoints rotate in the other direction, so that the converter negates
//!   the second half of each head.
//! - Norms: RMS pre-norm without weights; the token embedding is normalized too.
//! - FFN: SwiGLU; outputs of attention and FFN are scaled (`attn_output.scale`, `ffn_down.scale`).
//! - Each layer adds the embedding again, by `layer_output_scale`.
//! - Logits are scaled by `logit_scale`, which checkpoints store as a tensor.
//!
//! Class `TalkieForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
