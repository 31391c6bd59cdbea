//! LFM2 and LFM2.5 (Liquid AI; classes `Lfm2ForCausalLM`, `Lfm2Model`, `Lfm2BidirectionalModel` and
//! `Lfm25AudioTokenizer`): architecture `lfm2`.
//!
//! Most layers are gated short convolutions, `out(c * conv(b * x))`, the others GQA with QK-norm
//! and RoPE in NeoX layout. A layer whose number of KV heads is 0 is a convolution. RMS pre-norm,
//! SwiGLU FFN. The final norm is named `token_embd_norm`.
//!
//! The bidirectional model is an encoder with pooling. The audio tokenizer maps codes to frames of
//! a spectrum by a last matrix (`dense_2`); no graph is built for it. Source: `Lfm2ForCausalLM` in
//! transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
