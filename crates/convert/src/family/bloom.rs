//! Bloom.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use super::Family;
use super::hyper::{self, Keys};
use super::names::Table;

/// Without the prefix `transformer.`, which the first uploads do not have.
const NAMES: Table = &[
    ("word_embeddings", "token_embd"),
    ("word_embeddings_layernorm", "token_embd_norm"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("h.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

pub(super) static BLOOM: Family = Family {
    classes: &["BloomForCausalLM", "BloomModel"],
    architecture: "bloom",
    model_type: "bloom",
    pre_tokenizers: &["bloom"],
    prefix: "transformer.",
    names: &[NAMES],
    fields: &[
        ("block_count", "n_layer"),
        ("context_length", "seq_length"),
        ("feed_forward_length", "n_inner"),
        ("attention.head_count", "n_head"),
        ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    ],
    expects: &[("apply_residual_connection_post_layernorm", false)],
    keys,
    steps,
    export: |_, exported| Some(exported.without(&["attention.head_count_kv"])),
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let heads = hyper::head_count(config)?;
    // ALiBi knows no longest context; without a statement the width stands in.
    keys.set("context_length", config.u32(&["seq_length"])?.unwrap_or(width));
    keys.set("embedding_length", width);
    keys.set("feed_forward_length", hyper::inner_width(config, width)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", heads);
    keys.set("attention.head_count_kv", heads);
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.file_type();
    Ok(())
}

fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let step = name.contains(".attn_qkv.").then(|| hyper::sort_heads(config)).transpose()?;
    Ok(Vec::from_iter(step))
}
