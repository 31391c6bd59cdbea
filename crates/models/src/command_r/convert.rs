//! Conversion of `CohereForCausalLM`. `model_max_length` has precedence over
//! `max_position_embeddings`; the tied output projection is dropped.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::has;
use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, Mapping, defaults};
use crate::schema::key;

pub(crate) struct Cohere;

/// Description of [`Cohere`].
pub(crate) static COHERE: Description = Description {
    classes: &["CohereForCausalLM"],
    architecture: "command-r",
    model_type: "cohere",
    pre_tokenizers: &["command-r"],
    config_fields: CONFIG_FIELDS,
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Cohere {
    fn description(&self) -> &'static Description {
        &COHERE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        // Models are trained on longer contexts than `max_position_embeddings` says.
        if let Some(length) = config.u32(&["model_max_length"])? {
            config.set("max_position_embeddings", length);
        }
        config.default("logit_scale", 0.0625);
        config.default("layer_norm_eps", 1e-5);
        config.default("rope_theta", 5e5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_f32(key::LOGIT_SCALE, config.f32(&["logit_scale"])?);
        keys.rope_scaling_or_none();
        Ok(())
    }

    fn map_tensor(&self, _config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // The output projection is tied to the embedding.
        Ok((name == "lm_head.weight").then_some(Mapping::Dropped))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight")))
    }
}

/// Keys of both generations, and their fields.
pub(crate) const CONFIG_FIELDS: &[(&str, &str)] =
    &[("attention.layer_norm_epsilon", "layer_norm_eps"), ("logit_scale", "logit_scale")];
