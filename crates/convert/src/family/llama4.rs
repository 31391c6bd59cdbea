//! Llama 4, as a text model: experts in every layer or every other.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::experts::turned;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, Mapping, exported};

const FEED_FORWARD: Table = &[
    ("model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.feed_forward.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.feed_forward.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.feed_forward.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

/// All experts of a layer in one.
const DOWN: &str = "model.layers.{}.feed_forward.experts.down_proj";
const GATE_AND_UP: &str = "model.layers.{}.feed_forward.experts.gate_up_proj";

/// Where the width of an expert stands after [`complete`].
const EXPERT_WIDTH: &[&str] = &["intermediate_size_moe"];

pub(super) static LLAMA4: Family = Family {
    classes: &["Llama4ForCausalLM", "Llama4ForConditionalGeneration"],
    architecture: "llama4",
    model_type: "llama4_text",
    pre_tokenizers: &["llama4", "gpt-4o"],
    names: &[FEED_FORWARD, LLAMA_LIKE],
    fields: &[
        ("expert_count", "num_local_experts"),
        ("expert_feed_forward_length", "intermediate_size"),
        ("feed_forward_length", "intermediate_size_mlp"),
        ("interleave_moe_layer_step", "interleave_moe_layer_step"),
    ],
    complete,
    keys,
    special,
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("head_dim", 128);
    config.default("num_key_value_heads", 8);
    config.default("rope_theta", 5e5);
    config.default("num_local_experts", 16);
    config.default("num_experts_per_tok", 1);
    config.default("interleave_moe_layer_step", 1);
    // What other families call the feed-forward width is here that of an expert.
    let expert = config.require_u32(&["intermediate_size"], "the width of an expert")?;
    let dense = config.u32(&["intermediate_size_mlp"])?.unwrap_or(16384);
    config.set(EXPERT_WIDTH[0], expert);
    config.set("intermediate_size", dense);
    Ok(())
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.decoder(config, hyper::stated_head_dim(config)?)?;
    keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
    keys.set("rope.dimension_count", hyper::head_dim(config)?);
    let step = config.u32(&["interleave_moe_layer_step"])?;
    keys.set_u32("interleave_moe_layer_step", step);
    keys.set_u32("expert_feed_forward_length", config.u32(EXPERT_WIDTH)?);
    let kinds = config.find(&["layer_types"]).and_then(|(_, kinds)| kinds.as_array());
    if kinds.is_some_and(|kinds| kinds.iter().all(|kind| kind == "full_attention")) {
        keys.set("attention.sliding_window", 0u32);
    }
    Ok(())
}

/// The matrices of experts are stored with rows and columns exchanged.
fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    turned(config, name, [DOWN, GATE_AND_UP], EXPERT_WIDTH)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let count = |key| exported::count(model, key);
    let exported = exported
        .patterns([DOWN, GATE_AND_UP])
        .without(&["attention.sliding_window"])
        // Programs tell so which of the two sizes normalizes queries and keys.
        .set("use_qk_norm", count("expert_count") != Some(128));
    if count("attention.sliding_window") == Some(0) {
        let blocks = usize::try_from(count("block_count")?.min(1 << 16)).ok()?;
        return Some(exported.set("layer_types", vec!["full_attention"; blocks]));
    }
    Some(exported)
}
