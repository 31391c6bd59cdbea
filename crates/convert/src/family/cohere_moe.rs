//! Cohere's second generation with experts.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::count;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Mapping, experts, further, windows};

const TABLES: &[Table] = &[experts::BESIDE_SHARED, further::NAMES, LLAMA_LIKE];
const KINDS: &str = "mlp_layer_types";
const DENSE: &str = "first_k_dense_replace";
const STRATEGY: &str = "shared_expert_combination_strategy";

pub(super) static COHERE2_MOE: Family = Family {
    classes: &["Cohere2MoeForCausalLM"],
    architecture: "cohere2moe",
    model_type: "cohere2_moe",
    pre_tokenizers: &["command-r", "tiny_aya"],
    names: TABLES,
    fields: &[
        ("expert_feed_forward_length", "intermediate_size"),
        ("feed_forward_length", "prefix_dense_intermediate_size"),
        ("attention.layer_norm_epsilon", "layer_norm_eps"),
        ("logit_scale", "logit_scale"),
        ("expert_shared_count", "num_shared_experts"),
        ("expert_weights_norm", "norm_topk_prob"),
        ("leading_dense_block_count", DENSE),
    ],
    complete: |config| {
        config.default("logit_scale", 0.0625);
        config.default("sliding_window", 4096);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys,
    special,
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width =
        config.require_u32(&["intermediate_size"], "the feed-forward width of an expert")?;
    let further = config.u32(&[further::COUNT])?.filter(|&further| further > 0);
    let mut dense_first = config.clone();
    let dense = config.u32(&["prefix_dense_intermediate_size", "dense_intermediate_size"])?;
    dense_first.set("intermediate_size", dense.unwrap_or(width));
    keys.stated(&dense_first)?;
    keys.set("block_count", hyper::block_count(config)?.saturating_add(further.unwrap_or(0)));
    keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
    keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
    let layers = windows::layers(config, 4)?;
    keys.set("attention.sliding_window_pattern", Array::from(&layers[..]));
    keys.vocab_size(config)?;
    keys.set("expert_feed_forward_length", width);
    keys.set("leading_dense_block_count", dense_layers(config)?);
    keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
    if let Some(shared) = config.u32(&["num_shared_experts"])?.filter(|&shared| shared > 0) {
        if let Some((_, strategy)) = config.find(&[STRATEGY]).filter(|(_, way)| *way != "average") {
            return Err(hyper::not_computed(config, STRATEGY, strategy));
        }
        keys.set("expert_shared_count", shared);
        keys.set("expert_shared_feed_forward_length", width.saturating_mul(shared));
    }
    keys.set_u32("nextn_predict_layers", further);
    keys.set("rope.dimension_count", hyper::head_dim(config)?);
    keys.else_not_stretched();
    Ok(())
}

/// The first layers, which have no experts: as they are listed, or counted.
fn dense_layers(config: &Config) -> Result<u32, Error> {
    let kinds = config.find(&[KINDS]).and_then(|(_, kinds)| kinds.as_array());
    let counted = kinds.map(|kinds| kinds.iter().take_while(|kind| *kind == "dense").count());
    match counted {
        Some(counted) => Ok(u32::try_from(counted).unwrap_or(u32::MAX)),
        None => Ok(config.u32(&[DENSE])?.unwrap_or(0)),
    }
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if name.ends_with(".bias") && renamed(name, TABLES).is_some() {
        return Ok(Some(Mapping::DroppedIfZero));
    }
    let width = || config.require_u32(&["intermediate_size"], "the width of an expert");
    experts::mapping(config, name, width)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let further = count(model, "nextn_predict_layers");
    let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
    let function = match count(model, "expert_gating_func") {
        Some(2) => Some("sigmoid"),
        Some(1) => Some("softmax"),
        _ => None,
    };
    let exported = exported
        .patterns(experts::one_by_one())
        .without(&["block_count"])
        .set("num_hidden_layers", blocks)
        .set_some("expert_selection_fn", function)
        .set_some(further::COUNT, further);
    Some(windows::export_of_pattern(model, exported))
}
