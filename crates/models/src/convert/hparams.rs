//! Hyper-parameters in config.json, whose fields have several names.

use std::fmt::Display;

use gguf::Error;
use gguf_checkpoint::config::Config;

pub(super) const FEED_FORWARD: &[&str] = &[
    "intermediate_size",
    "prefix_dense_intermediate_size",
    "dense_intermediate_size",
    "n_inner",
    "hidden_dim",
];

pub(super) const HEAD_COUNT_KV: &[&str] = &["num_key_value_heads", "n_kv_heads"];

pub(super) const EPSILON: &[&str] = &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"];

pub(super) const EXPERT_COUNT: &[&str] = &["num_local_experts", "num_experts", "n_routed_experts"];

const BLOCK_COUNT: &[&str] = &["num_hidden_layers", "n_layers", "n_layer", "num_layers"];

const CONTEXT_LENGTH: &[&str] = &[
    "max_position_embeddings",
    "n_ctx",
    "n_positions",
    "max_length",
    "max_sequence_length",
    "model_max_length",
];

const EMBEDDING_LENGTH: &[&str] = &["hidden_size", "n_embd", "n_embed", "dim"];

/// Returns the number of layers.
pub fn block_count(config: &Config) -> Result<u32, Error> {
    possible(config, "layers", config.require_u32(BLOCK_COUNT, "the number of layers")?)
}

/// Refuses a number far beyond that of any model, before as many values are computed.
pub fn possible(config: &Config, of: &str, number: u32) -> Result<u32, Error> {
    const LIMIT: u32 = 1 << 16;
    if number <= LIMIT {
        return Ok(number);
    }
    let what = format!("states {number} {of}");
    Err(Error::input(
        "config-field",
        config.path(),
        what,
        "take the file from the model's repository",
    ))
}

/// Returns the context length in tokens.
pub fn context_length(config: &Config) -> Result<u32, Error> {
    config.require_u32(CONTEXT_LENGTH, "the context length in tokens")
}

/// Returns the embedding size.
pub fn width(config: &Config) -> Result<u32, Error> {
    config.require_u32(EMBEDDING_LENGTH, "the embedding size")
}

/// Returns the FFN size.
pub fn feed_forward(config: &Config) -> Result<u32, Error> {
    config.require_u32(FEED_FORWARD, "the FFN size")
}

/// Returns the FFN size, which is four times the embedding size by default.
pub fn inner_width(config: &Config, width: u32) -> Result<u32, Error> {
    Ok(config.u32(&["n_inner"])?.unwrap_or(width.saturating_mul(4)))
}

/// Returns the epsilon of layer norms.
pub fn layer_norm_epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(EPSILON, "epsilon of the norms")
}

/// Fails if a flag has a value that no runtime supports for this architecture.
pub fn expect(config: &Config, field: &str, expected: bool) -> Result<(), Error> {
    match config.bool(field)? {
        Some(stated) if stated != expected => Err(not_computed(config, field, stated)),
        _ => Ok(()),
    }
}

/// Returns the error of a field with a value that no runtime supports for this architecture.
pub fn not_computed(config: &Config, field: &str, stated: impl Display) -> Error {
    let what = format!("`{field}` is {stated}, which llama.cpp does not support");
    let help = "this model cannot be converted; correct the field if it is wrong";
    Error::input("config-unsupported", config.path(), what, help)
}

/// Returns the number of experts.
pub fn expert_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(EXPERT_COUNT, "the number of experts")
}

/// Returns the number of heads.
pub fn head_count(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["num_attention_heads", "n_head", "n_heads"], "the number of heads")
}

/// Returns the number of KV heads, which is that of heads by default.
pub fn head_count_kv(config: &Config) -> Result<u32, Error> {
    match config.u32(HEAD_COUNT_KV)? {
        Some(0) | None => head_count(config),
        Some(count) => Ok(count),
    }
}

/// Returns `head_dim`, if config.json states it.
pub fn stated_head_dim(config: &Config) -> Result<Option<u32>, Error> {
    config.u32(&["head_dim"])
}

/// Returns the head size: `head_dim`, else the embedding size divided by the number of heads.
pub fn head_dim(config: &Config) -> Result<u32, Error> {
    if let Some(dim) = stated_head_dim(config)? {
        return Ok(dim);
    }
    Ok(width(config)? / head_count(config)?)
}
