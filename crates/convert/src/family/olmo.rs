//! OLMo 1, 2 and 3.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, windows};

/// The first generation, whose norms have no weights.
pub(super) static OLMO: Family = Family {
    classes: &["OlmoForCausalLM", "OLMoForCausalLM"],
    architecture: "olmo",
    model_type: "olmo",
    pre_tokenizers: &["olmo"],
    fields: &[("attention.clamp_kqv", "clip_qkv")],
    expects: &[("attention_bias", false)],
    keys: first_keys,
    steps: hyper::llama_order,
    complete: hyper::default_attention,
    ..Family::DEFAULT
};

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set("attention.layer_norm_epsilon", 1e-5f32);
    keys.set_f32("attention.clamp_kqv", config.f32(&["clip_qkv"])?);
    Ok(())
}

/// The later generations, whose norms follow what they normalize.
pub(super) const NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

pub(super) static OLMO2: Family = Family {
    classes: &["Olmo2ForCausalLM", OLMO3],
    architecture: "olmo2",
    model_type: "olmo2",
    pre_tokenizers: &["dbrx"],
    names: &[NORMS, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: later_complete,
    keys: later_keys,
    export: later_export,
    ..Family::DEFAULT
};

fn later_complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    if config.class()? == OLMO3 {
        config.default("sliding_window", 4096);
        config.default("rope_theta", 5e5);
        config.default("rope_local_base_freq", 5e5);
    }
    hyper::default_attention(config)
}

fn later_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set("attention.sliding_window", window);
        keys.set("attention.sliding_window_pattern", Array::from(&windows::layers(config, 4)?[..]));
    }
    Ok(())
}

fn later_export(model: &Model, exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    if metadata.get("olmo2.attention.sliding_window").is_none() {
        return Some(exported);
    }
    let exported =
        exported.class(OLMO3, "olmo3").fields(&[("rope.freq_base_swa", "rope_local_base_freq")]);
    Some(windows::export_of_pattern(model, exported))
}

const OLMO3: &str = "Olmo3ForCausalLM";
