//! GPT-NeoX and Pythia.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::Table;
use super::{Exported, Family, exported};

const NAMES: Table = &[
    ("gpt_neox.embed_in", "token_embd"),
    ("gpt_neox.final_layer_norm", "output_norm"),
    ("embed_out", "output"),
    // As newer versions of `transformers` call it.
    ("lm_head", "output"),
    ("gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("gpt_neox.layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

/// The share of a head that is rotated where nothing is said, as in `transformers`.
const ROTARY_SHARE: f64 = 0.25;

pub(super) static GPTNEOX: Family = Family {
    classes: &["GPTNeoXForCausalLM"],
    architecture: "gptneox",
    model_type: "gpt_neox",
    pre_tokenizers: &["gpt-2"],
    names: &[NAMES],
    fields: &[
        ("attention.layer_norm_epsilon", "layer_norm_eps"),
        ("rope.freq_base", "rotary_emb_base"),
        ("use_parallel_residual", "use_parallel_residual"),
    ],
    expects: &[("attention_bias", true)],
    keys,
    steps,
    export,
    ..Family::DEFAULT
};

/// As llama.cpp's converter has it, without a file type.
fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let head_dim = hyper::head_dim(config)?;
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.set("rope.dimension_count", hyper::rotated_dims(config, head_dim, ROTARY_SHARE)?);
    keys.unusual_rope(config)?;
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("use_parallel_residual", config.bool("use_parallel_residual")?.unwrap_or(true));
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    Ok(())
}

fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let step = name.contains(".attn_qkv.").then(|| hyper::sort_heads(config)).transpose()?;
    Ok(Vec::from_iter(step))
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.set_some("rotary_pct", exported::rotated_share(model)))
}
