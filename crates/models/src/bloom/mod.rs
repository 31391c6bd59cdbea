//! BLOOM by BigScience (arXiv 2211.05100).
//!
//! Multi-head attention with a fused QKV projection and ALiBi slopes (maximum bias 8, for which
//! files have no key) instead of RoPE. Layer norms with biases: of the token embedding, before
//! attention and before the FFN. All linear layers have biases. FFN without a gate, with GELU. The
//! checkpoint interleaves query, key and value by head; conversion groups them by kind. The output
//! projection may be tied to the embedding. The graph is that of `gpt2`. Source: class
//! `BloomForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
