//! Mellum 2 and Maple: experts, and windows in some layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, hparams, moe, sliding_window};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct Mellum;

impl Converter for Mellum {
    fn classes(&self) -> &'static [&'static str] {
        &["MellumForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "mellum"
    }

    fn model_type(&self) -> &'static str {
        "mellum"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["mellum2", "mellum"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[EXPERT_NAMES, LLAMA_LIKE]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("norm_topk_prob", true)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("head_dim", 128);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        if config.bool("use_sliding_window")? != Some(false) {
            window_keys(config, keys)?;
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export(model, exported).set("norm_topk_prob", true))
    }
}

pub(crate) fn window_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        let layers = sliding_window::layers(config, 0)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
    }
    Ok(())
}

pub(crate) fn export(model: &Model, exported: Exported) -> Exported {
    sliding_window::export_of_pattern(model, exported.patterns(moe::one_by_one()))
}
