//! StarCoder (`gpt_bigcode`: GPT-2 with one head of keys and values) and StarCoder 2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, exported, gpt2, windows};

pub(super) static STARCODER: Family = Family {
    classes: &["GPTBigCodeForCausalLM"],
    architecture: "starcoder",
    model_type: "gpt_bigcode",
    pre_tokenizers: &["starcoder", "gpt-2"],
    prefix: "transformer.",
    names: &[gpt2::NAMES],
    fields: &gpt2::FIELDS,
    keys: first_keys,
    steps: first_steps,
    export: first_export,
    ..Family::DEFAULT
};

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let heads = hyper::head_count(config)?;
    keys.set("context_length", config.require_u32(&["n_positions"], "the longest context")?);
    keys.set("embedding_length", width);
    keys.set("feed_forward_length", hyper::inner_width(config, width)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", heads);
    keys.set("attention.head_count_kv", if is_multi_query(config)? { 1 } else { heads });
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.file_type();
    Ok(())
}

fn first_steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    // With keys and values for every head, all three are stored head by head.
    if name.contains(".attn_qkv.") && !is_multi_query(config)? {
        return Ok(vec![hyper::sort_heads(config)?]);
    }
    Ok(Vec::new())
}

fn first_export(model: &Model, exported: Exported) -> Option<Exported> {
    let is_multi_query = exported::head_count_kv(model) == Some(1);
    Some(exported.set("multi_query", is_multi_query))
}

/// Whether all heads share one head of keys and values, as they do if nothing is said.
fn is_multi_query(config: &Config) -> Result<bool, Error> {
    Ok(config.bool("multi_query")?.unwrap_or(true))
}

/// Where it differs from llama.
const NAMES: Table = &[
    ("model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

pub(super) static STARCODER2: Family = Family {
    classes: &["Starcoder2ForCausalLM"],
    architecture: "starcoder2",
    model_type: "starcoder2",
    pre_tokenizers: &["starcoder"],
    names: &[NAMES, LLAMA_LIKE],
    fields: &[("attention.layer_norm_epsilon", "norm_epsilon")],
    expects: &[("use_bias", true)],
    complete: second_complete,
    keys: |config, keys| {
        keys.stated(config)?;
        windows::unexpected(keys, config, config.u32(&["sliding_window"])?)
    },
    export: |model, exported| {
        Some(exported.set("use_bias", exported::may_have(model, "blk.0.attn_q.bias")))
    },
    ..Family::DEFAULT
};

fn second_complete(config: &mut Config) -> Result<(), Error> {
    config.default("rope_theta", 10000.0);
    config.default("norm_epsilon", 1e-5);
    Ok(())
}
