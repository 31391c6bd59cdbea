//! Conversion of Mellum 2: MoE, and a flag per layer for sliding-window attention.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, defaults, moe, sliding_window};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct Mellum;

/// Description of [`Mellum`].
pub(crate) static MELLUM: Description = Description {
    classes: &["MellumForCausalLM"],
    architecture: "mellum",
    model_type: "mellum",
    pre_tokenizers: &["mellum2", "mellum"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    required_flags: &[("norm_topk_prob", true)],
    ..Description::DECODER
};

impl Converter for Mellum {
    fn description(&self) -> &'static Description {
        &MELLUM
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("head_dim", 128);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        if config.bool("use_sliding_window")? != Some(false) {
            sliding_window_keys(config, keys)?;
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export(model, exported).set("norm_topk_prob", true))
    }
}

/// Writes the sliding window and the layers that use it.
pub(crate) fn sliding_window_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        let layers = sliding_window::layers(config, 0)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
    }
    Ok(())
}

/// Completes an export: names of experts, and the layers with sliding-window attention.
pub(crate) fn export(model: &Model, exported: Exported) -> Exported {
    sliding_window::export_of_pattern(model, exported.patterns(moe::one_by_one()))
}
