//! OpenELM of Apple (arXiv:2404.14619).
//!
//! - Layer-wise scaling: head counts and FFN widths differ between layers and are arrays in the
//!   metadata.
//! - Attention: GQA with a fused QKV matrix and RMS QK-norm for each head.
//! - RoPE: NeoX layout.
//! - Norms: RMS pre-norm.
//! - FFN: SwiGLU; checkpoints fuse gate and up projection.
//! - The token embedding is the output projection.
//!
//! Class `OpenELMForCausalLM`; `openelm.cpp` in llama.cpp. The graph is that of `qwen`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
