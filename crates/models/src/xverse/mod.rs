//! XVERSE 7B, 13B and 65B.
//!
//! - Attention: MHA or GQA.
//! - RoPE: interleaved layout, as in llama; the converter permutes the rows of queries and keys.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Vocabulary: from tokenizer.json, without scores.
//!
//! Class `XverseForCausalLM`; `xverse.cpp` in llama.cpp. The graph is that of `llama`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
