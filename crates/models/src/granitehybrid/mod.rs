//! Granite 4 (IBM; class `GraniteMoeHybridForCausalLM`) and Bamba (`BambaForCausalLM`):
//! architecture `granitehybrid`.
//!
//! Most layers are Mamba 2 state-space layers (SSM), the others grouped-query attention (GQA); a
//! layer whose number of KV heads is 0 is an SSM layer. Granite 4 does not encode positions (NoPE);
//! Bamba rotates a part of each head. RMS pre-norm, SwiGLU FFN, or MoE with a shared expert;
//! Granite has the multipliers of `granite`.
//!
//! Granite 4 models without SSM layers are converted as `granite` or `granitemoe`. Source: both
//! classes in transformers.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
