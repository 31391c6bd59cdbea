//! CodeShell by Peking University (WisdomShell).
//!
//! GPT-2's layer with RoPE and grouped-query attention: layer norms with biases before attention
//! and FFN, a fused QKV projection, biases in all linear layers, FFN without a gate and with GELU.
//! Files state a base frequency of 10000 and linear RoPE scaling with factor 1. The output
//! projection is not tied to the embedding. The graph is that of `starcoder2`. Source: class
//! `CodeShellForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
