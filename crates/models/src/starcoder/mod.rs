//! StarCoder (arXiv:2305.06161) and SantaCoder (arXiv:2301.03988) of BigCode.
//!
//! - Attention: MQA in most models, else MHA; fused QKV matrix with bias.
//! - Positions: learned embeddings.
//! - Norms: pre-norm layer norms with bias.
//! - FFN: GELU (tanh approximation) without gate, with biases.
//! - Conversion: the fused matrix of MHA models is stored head by head and is regrouped.
//!
//! Class `GPTBigCodeForCausalLM` in `transformers`; `starcoder.cpp` in llama.cpp. The graph is that
//! of `gpt2`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
