//! MPT of MosaicML (MPT 7B and 30B).
//!
//! - Attention: MHA or GQA with a fused QKV matrix and ALiBi; models without ALiBi have learned
//!   positions. Some models clamp queries, keys and values, some have QK-norm over the whole rows.
//! - Norms: pre-norm layer norms, in most models without bias.
//! - FFN: GELU without gate; AWQ checkpoints divide its activations by `ffn.act.scales`.
//! - The token embedding is the output projection unless the file has `output.weight`.
//!
//! Classes `MPTForCausalLM` (by the authors) and `MptForCausalLM` (`transformers`); `mpt.cpp` in
//! llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
