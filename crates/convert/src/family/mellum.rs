//! Mellum 2 and Maple: experts, and windows in some layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::LLAMA_LIKE;
use super::qwen_moe::EXPERT_NAMES;
use super::{Exported, Family, experts, exported, windows};

pub(super) static MELLUM: Family = Family {
    classes: &["MellumForCausalLM"],
    architecture: "mellum",
    model_type: "mellum",
    pre_tokenizers: &["mellum2", "mellum"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    expects: &[("norm_topk_prob", true)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        config.default("head_dim", 128);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
        if config.bool("use_sliding_window")? != Some(false) {
            window_keys(config, keys)?;
        }
        Ok(())
    },
    special: |config, name| experts::routed(config, name),
    export: |model, exported| Some(export(model, exported).set("norm_topk_prob", true)),
    ..Family::DEFAULT
};

/// The reference bounds gates and what they gate by this.
const BOUND: f32 = 7.0;

pub(super) static MAPLE: Family = Family {
    classes: &["MapleForCausalLM"],
    architecture: "maple",
    model_type: "maple",
    pre_tokenizers: &["qwen2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    expects: &[("norm_topk_prob", true), ("nope_on_global_attention", true)],
    complete: MELLUM.complete,
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 1.0)?;
        keys.set("rope.dimension_count", rotated);
        window_keys(config, keys)?;
        keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
        let bounds = vec![BOUND; hyper::block_count(config)? as usize];
        keys.set("swiglu_clamp_exp", Array::from(&bounds[..]));
        Ok(())
    },
    special: |config, name| experts::routed(config, name),
    export: |model, exported| {
        let exported = export(model, exported)
            .set("norm_topk_prob", true)
            .set("nope_on_global_attention", true)
            .set_some("partial_rotary_factor", exported::rotated_share(model));
        Some(exported)
    },
    ..Family::DEFAULT
};

fn window_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set("attention.sliding_window", window);
        let layers = windows::layers(config, 0)?;
        keys.set("attention.sliding_window_pattern", Array::from(&layers[..]));
    }
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Exported {
    windows::export_of_pattern(model, exported.patterns(experts::one_by_one()))
}
