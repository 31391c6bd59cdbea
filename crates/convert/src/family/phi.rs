//! Phi 2, Phi 3 and Phi 4.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use super::hyper::{self, Keys, Rope};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, exported};
use crate::vocab;

/// What differs from the usual names.
const PHI2_NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.self_attn.dense", "blk.{}.attn_output"),
    ("model.layers.{}.mlp.fc1", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
];

pub(super) static PHI2: Family = Family {
    classes: &["PhiForCausalLM"],
    architecture: "phi2",
    model_type: "phi",
    pre_tokenizers: &["phi-2"],
    names: &[PHI2_NAMES, LLAMA_LIKE],
    fields: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    expects: &[("qk_layernorm", false)],
    keys: phi2_keys,
    export: phi2_export,
    ..Family::DEFAULT
};

fn phi2_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let heads = hyper::head_count(config)?;
    let rotated = (hyper::rotated_share(config, 0.5)? * f64::from(width)) as u32 / heads;
    let epsilon = config.f32(&["layer_norm_epsilon", "layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", width);
    let feed_forward = config.u32(&["intermediate_size"])?;
    keys.set("feed_forward_length", feed_forward.unwrap_or(width.saturating_mul(4)));
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", heads);
    keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
    keys.set("attention.layer_norm_epsilon", epsilon);
    keys.set("rope.dimension_count", rotated);
    keys.file_type();
    keys.before_vocabulary("tokenizer.ggml.add_bos_token", false);
    keys.unusual_rope(config)
}

fn phi2_export(model: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.set_some("partial_rotary_factor", exported::rotated_share(model)))
}

/// Queries, keys and values are one matrix here and in a GGUF, and so are gate and what it gates.
const PHI3_NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

/// Dimensions of a head that rotate.
fn rotated(config: &Config) -> Result<u32, Error> {
    let width = f64::from(hyper::width(config)?);
    Ok((hyper::rotated_share(config, 1.0)? * width) as u32 / hyper::head_count(config)?)
}

pub(super) static PHI3: Family = Family {
    classes: &["Phi3ForCausalLM", "Phi4ForCausalLMV"],
    architecture: "phi3",
    model_type: "phi3",
    vocabulary: vocab::Kind::Phi3,
    pre_tokenizers: &["dbrx", "gpt-4o"],
    names: &[PHI3_NAMES, LLAMA_LIKE],
    fields: &[("rope.scaling.original_context_length", "original_max_position_embeddings")],
    complete: phi3_complete,
    first_keys: phi3_first_keys,
    keys: phi3_keys,
    computed: phi3_computed,
    export: phi3_export,
    ..Family::DEFAULT
};

fn phi3_complete(config: &mut Config) -> Result<(), Error> {
    config.default("original_max_position_embeddings", 4096);
    config.default("rope_theta", 1e4);
    Ok(())
}

/// By how much long contexts sharpen attention: the formula of `longrope` in transformers'
/// `modeling_rope_utils.py`.
fn phi3_first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if hyper::longrope_factors(config, rotated(config)?)?.is_empty() {
        return Ok(());
    }
    let original = f64::from(Rope::of(config)?.original_context()?);
    let scale = f64::from(hyper::context_length(config)?) / original;
    let factor = if scale > 1.0 { (1.0 + scale.ln() / original.ln()).sqrt() } else { 1.0 };
    keys.set("rope.scaling.attn_factor", factor as f32);
    Ok(())
}

fn phi3_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.set("context_length", hyper::context_length(config)?);
    let original = Rope::of(config)?.original_context()? as u32;
    keys.set("rope.scaling.original_context_length", original);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
    let epsilon = config.f32(&["rms_norm_eps"])?.unwrap_or(1e-5);
    keys.set("attention.layer_norm_rms_epsilon", epsilon);
    keys.set("rope.dimension_count", rotated(config)?);
    keys.set_f32("rope.freq_base", Rope::of(config)?.base);
    keys.file_type();
    // Zero tells programs that this is Phi 4.
    keys.set("attention.sliding_window", config.u32(&["sliding_window"])?.unwrap_or(0));
    Ok(())
}

fn phi3_computed(config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
    hyper::longrope_factors(config, rotated(config)?)
}

fn phi3_export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported.set_some("partial_rotary_factor", exported::rotated_share(model));
    Some(match exported::count(model, "attention.sliding_window") {
        Some(0) => exported.set("sliding_window", Value::Null),
        _ => exported,
    })
}
