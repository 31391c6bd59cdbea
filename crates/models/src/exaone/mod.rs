//! EXAONE 3 and 3.5 by LG AI Research.
//!
//! Llama's layer under the tensor names of GPT-2: grouped-query attention, RoPE in NeoX layout with
//! Llama 3 scaling (`rope_freqs`), RMS pre-norms, SwiGLU FFN. The output projection may be tied to
//! the embedding. The configuration calls the RMS epsilon `layer_norm_epsilon`. The graph is that
//! of `qwen`. Source: class `ExaoneForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
