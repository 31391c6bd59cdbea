//! Command R and Command R7B.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::{has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Exported, Family, Mapping, windows};

pub(super) static COHERE: Family = Family {
    classes: &["CohereForCausalLM"],
    architecture: "command-r",
    model_type: "cohere",
    pre_tokenizers: &["command-r"],
    fields: FIELDS,
    expects: &[("attention_bias", false)],
    complete: first_complete,
    keys: first_keys,
    special: first_special,
    export: first_export,
    ..Family::DEFAULT
};

fn first_complete(config: &mut Config) -> Result<(), Error> {
    // The models were trained on contexts longer than the other field says.
    if let Some(length) = config.u32(&["model_max_length"])? {
        config.set("max_position_embeddings", length);
    }
    config.default("logit_scale", 0.0625);
    config.default("layer_norm_eps", 1e-5);
    config.default("rope_theta", 5e5);
    hyper::default_attention(config)
}

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
    keys.else_not_stretched();
    Ok(())
}

fn first_special(_config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // The embedding is the output matrix too.
    Ok((name == "lm_head.weight").then_some(Mapping::Dropped))
}

fn first_export(model: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight")))
}

/// Keys that both generations have.
const FIELDS: &[(&str, &str)] =
    &[("attention.layer_norm_epsilon", "layer_norm_eps"), ("logit_scale", "logit_scale")];

pub(super) static COHERE2: Family = Family {
    classes: &["Cohere2ForCausalLM"],
    architecture: "cohere2",
    model_type: "cohere2",
    pre_tokenizers: &["command-r"],
    fields: FIELDS,
    complete: second_complete,
    keys: second_keys,
    special: second_special,
    export: second_export,
    ..Family::DEFAULT
};

fn second_complete(config: &mut Config) -> Result<(), Error> {
    config.set("head_dim", hyper::width(config)? / hyper::head_count(config)?);
    config.default("logit_scale", 0.0625);
    config.default("layer_norm_eps", 1e-5);
    config.default("sliding_window", 4096);
    hyper::default_attention(config)
}

fn second_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
    keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
    keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
    let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 1.0)?;
    keys.set("rope.dimension_count", rotated);
    keys.else_not_stretched();
    windows::unusual_pattern(keys, config, 4)
}

fn second_special(_config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if name == "lm_head.weight" {
        return Ok(Some(Mapping::Dropped));
    }
    let is_bias = name.ends_with(".bias") && renamed(name, &[LLAMA_LIKE]).is_some();
    Ok(is_bias.then_some(Mapping::DroppedIfZero))
}

fn second_export(model: &Model, exported: Exported) -> Option<Exported> {
    // Of so many layers one has no window.
    let exported = exported.set("sliding_window_pattern", 4);
    let exported = windows::export_of_pattern(model, exported);
    Some(exported.set_some("partial_rotary_factor", rotated_share(model)))
}
