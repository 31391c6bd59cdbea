//! Whisper of OpenAI (arXiv:2212.04356): speech recognition and translation.
//!
//! - Encoder: two convolutions over a log-mel spectrogram (the second with stride 2), learned
//!   positions, bidirectional MHA.
//! - Decoder: learned positions, causal MHA, cross-attention to the encoder.
//! - Norms: pre-norm layer norms with bias, epsilon 1e-5.
//! - FFN: GELU without gate, with biases. Key projections have no bias.
//! - The output projection is always the token embedding.
//!
//! llama.cpp does not support it as GGUF: keys follow the GGUF specification, and tensors are named
//! as in `t5`. Class `WhisperForConditionalGeneration` in `transformers`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
