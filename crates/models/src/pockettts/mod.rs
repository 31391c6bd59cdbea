//! Pocket TTS of Kyutai: the language model of a text-to-speech model on continuous audio latents.
//!
//! - Attention: MHA with separate matrices for queries, keys and values.
//! - RoPE: base frequency 10000; heads of 64 dimensions.
//! - Norms: pre-norm layer norms with bias.
//! - FFN: without gate.
//! - Embedding: token embedding, then the vector in front of a voice (if any) and the projected
//!   start-of-audio vector. There is no output matrix: the flow head and the Mimi codec are in the
//!   mmproj file.
//! - Checkpoints have no config.json; the converter infers it from tensor shapes. The crate has no
//!   graph for it.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
