//! DeepSeek OCR (arXiv 2510.18234) and Unlimited OCR: the language models behind their vision
//! encoders.
//!
//! The MoE of DeepSeek V2 with the attention of Llama: multi-head attention with RoPE in NeoX
//! layout over whole heads, RMS pre-norms. SwiGLU: leading dense layers, then a MoE with a softmax
//! router, whose weights are not normalized, and shared experts. The sliding window of Unlimited
//! OCR exempts the first tokens; the graph computes full attention instead. Sources: classes
//! `DeepseekOCRForCausalLM` and `UnlimitedOCRForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
