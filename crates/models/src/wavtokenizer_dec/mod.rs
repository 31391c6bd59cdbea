//! The decoder of WavTokenizer (arXiv:2408.16532): a vocoder from audio codes to spectrogram bins.
//!
//! - Input: codes, embedded by `token_embd`, then a convolution of width 7.
//! - Position net: six layers of residual convolutions with group norm, and one attention layer.
//! - ConvNeXt blocks: depthwise convolution, layer norm, two pointwise matrices with GELU, and a
//!   scale (`gamma`).
//! - Output: magnitude and phase, from which an inverse Fourier transform makes audio.
//!
//! Checkpoint class `WavTokenizerDec`; `wavtokenizer-dec.cpp` in llama.cpp. The crate has no graph
//! for it.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
