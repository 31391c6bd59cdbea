//! SmolLM3 3B of Hugging Face.
//!
//! - Attention: GQA.
//! - RoPE: interleaved layout; the last of each four layers has none (NoPE).
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU.
//! - Conversion: the rows of queries and keys are permuted as in llama; other NoPE patterns are
//!   refused.
//!
//! Class `SmolLM3ForCausalLM` in `transformers`; `smollm3.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
