//! DFlash and DSpark: draft models for speculative decoding that predict a block of tokens in one
//! forward pass.
//!
//! A draft reads hidden states of several target layers (`target_layers`), joined by the projection
//! `fc` and normalized by `enc.output_norm`. Its layers are those of Qwen 3 (grouped-query
//! attention, optional QK-norm, sinks and sliding window, RMS norms, SwiGLU), of Gemma 4, or of
//! DeepSeek V4. DSpark adds a low-rank Markov head (`markov_w1`, `markov_w2`) that conditions each
//! token of the block on the one before, and a confidence head; DFlash 2 adds convolutions and a
//! candidate selector. Embedding and output projection may be those of the target; `d2t` lists the
//! target ids of a reduced vocabulary. Keys and values of the text are projections of the joined hidden states;
//! one run computes a block: the last token and mask tokens, which attend to them and to each other. There is a
//! graph for layers like those of Qwen 3 without convolutions. Sources: classes `DFlashDraftModel`,
//! `Qwen3DSparkModel`, `DeepseekV4DSparkModel`, `Gemma4DSparkModel` and
//! `MuseGlimmerAssistantModel`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod deepseek4;
#[cfg(feature = "convert")]
pub(crate) mod gemma4;
#[cfg(feature = "graph")]
pub(crate) mod graph;
#[cfg(feature = "convert")]
pub(crate) mod muse_glimmer;
pub(crate) mod schema;
