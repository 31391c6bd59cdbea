//! Low-rank adapters (LoRA) in GGUF files: pairs of low-rank matrices whose product is added to a matrix of the base
//! model, and tensors that replace those of the base model.
//!
//! A pair belongs to the matrix `NAME` and is stored as `NAME.lora_a` with shape `[columns, rank]`
//! and `NAME.lora_b` with shape `[rank, rows]`. The matrix becomes `NAME + s * B A` with
//! `s = scale * alpha / rank`, where the user chooses `scale` and the file has `alpha`
//! (`llama_adapter_lora_weight::get_scale` in llama.cpp). The token embedding is an exception: its
//! `lora_a` has a row per token, `[rank, tokens]`, and its `lora_b` has a row per column. A pair of the token
//! embedding changes lookups only, not an output projection that is tied to it, as in PEFT.
//!
//! A tensor without these suffixes replaces the one of the base model. With a scale `s`, the base model's tensor
//! becomes `(1 - s) * base + s * tensor`, so that every adapter is a difference that its scale multiplies.
//!
//! [`Adapter::read`] and [`Adapter::require_fit`] decide for all commands whether an adapter can be used.

mod adapter;
mod change;
mod digest;
mod pair;
mod values;

pub use adapter::{ALPHA, Adapter, INVOCATION_TOKENS};
pub use change::Change;
pub use digest::{BASE_DIGEST, base_digest};
pub use pair::{EMBEDDING, Pair, PairDims, SUFFIXES};
pub use values::values;
