//! Conversion of Nemotron-4 and Minitron. Checkpoints store the weights of layer norms as the
//! difference from 1.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::{
    Converter, Description, Exported, VocabularyKind, defaults, export, hparams, rope, steps,
};
use crate::schema::key;

/// Fields of the epsilon of layer norms.
const EPSILON: &[&str] = &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"];

pub(crate) struct Nemotron;

/// Description of [`Nemotron`].
pub(crate) static NEMOTRON: Description = Description {
    classes: &["NemotronForCausalLM"],
    architecture: "nemotron",
    model_type: "nemotron",
    vocabulary: VocabularyKind::Nemotron,
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "norm_eps")],
    required_flags: &[("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for Nemotron {
    fn description(&self) -> &'static Description {
        &NEMOTRON
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set_f32(key::ATTENTION_LAYER_NORM_EPSILON, config.f32(EPSILON)?);
        let rotary = rope::rotated_dims(config, hparams::head_dim(config)?, 0.5)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary);
        let factor = Rope::of(config)?.f64("factor")?.or(config.f64(&["factor"])?);
        match factor {
            Some(factor) => {
                keys.set(key::ROPE_SCALING_TYPE, "linear");
                keys.set(key::ROPE_SCALING_FACTOR, factor as f32);
            }
            None => keys.set(key::ROPE_SCALING_TYPE, "none"),
        }
        Ok(())
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .without(&[key::ATTENTION_LAYER_NORM_RMS_EPSILON])
            .set_some("partial_rotary_factor", export::rotated_share(model));
        Some(exported)
    }
}
