//! Defaults of `transformers` for fields that config.json leaves out.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::hparams;
use crate::convert::rope::{DEFAULT_BASE, Rope};

/// Sets the number of KV heads and the RoPE base if config.json leaves them out, as most classes do.
///
/// # Errors
/// If a field has an invalid value, or there is no number of heads.
pub fn attention(config: &mut Config) -> Result<(), Error> {
    config.default("num_key_value_heads", hparams::head_count_kv(config)?);
    if Rope::of(config)?.base.is_none() {
        config.set("rope_theta", DEFAULT_BASE);
    }
    Ok(())
}

/// Returns `head_dim`, which has a default if `model_type` is `llama`, for any class.
pub fn head_dim(config: &Config) -> Result<Option<u32>, Error> {
    match is_llama(config) {
        true => hparams::head_dim(config).map(Some),
        false => hparams::stated_head_dim(config),
    }
}

/// Returns whether `transformers` uses the defaults of Llama.
pub fn is_llama(config: &Config) -> bool {
    config.json()["model_type"] == "llama"
}
