//! Nemotron and Minitron: norms that are stored as the difference from 1, feed-forward without a gate.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::hparams::{Keys, Rope};
use crate::convert::{Converter, Exported, VocabularyKind, export, hparams};

pub(crate) struct Nemotron;

impl Converter for Nemotron {
    fn classes(&self) -> &'static [&'static str] {
        &["NemotronForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "nemotron"
    }

    fn model_type(&self) -> &'static str {
        "nemotron"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Nemotron
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[("attention.layer_norm_epsilon", "norm_eps")]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("mlp_bias", false)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set_f32("attention.layer_norm_epsilon", config.f32(EPSILON)?);
        let rotated = hparams::rotated_dims(config, hparams::width(config)?, 0.5)?;
        keys.set("rope.dimension_count", rotated / hparams::head_count(config)?.max(1));
        let factor = Rope::of(config)?.f64("factor")?.or(config.f64(&["factor"])?);
        match factor {
            Some(factor) => {
                keys.set("rope.scaling.type", "linear");
                keys.set("rope.scaling.factor", factor as f32);
            }
            None => keys.set("rope.scaling.type", "none"),
        }
        Ok(())
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let is_norm = name.ends_with("norm.weight");
        Ok(Vec::from_iter(is_norm.then_some(Step::Map(Function::PlusOne))))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .without(&["attention.layer_norm_rms_epsilon"])
            .set_some("partial_rotary_factor", export::rotated_share(model));
        Some(exported)
    }
}

const EPSILON: &[&str] = &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"];
