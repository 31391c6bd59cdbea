//! Conversion of `Cohere2ForCausalLM`. The tied output projection is dropped; biases are dropped if
//! they are zero.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::command_r::convert::CONFIG_FIELDS;
use crate::convert::export::rotated_share;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, renamed};
use crate::convert::{
    Converter, Description, Exported, Mapping, defaults, hparams, rope, sliding_window,
};
use crate::schema::key;

pub(crate) struct Cohere2;

/// Description of [`Cohere2`].
pub(crate) static COHERE2: Description = Description {
    classes: &["Cohere2ForCausalLM"],
    architecture: "cohere2",
    model_type: "cohere2",
    pre_tokenizers: &["command-r"],
    config_fields: CONFIG_FIELDS,
    ..Description::DECODER
};

impl Converter for Cohere2 {
    fn description(&self) -> &'static Description {
        &COHERE2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.set("head_dim", hparams::width(config)? / hparams::head_count(config)?);
        config.default("logit_scale", 0.0625);
        config.default("layer_norm_eps", 1e-5);
        config.default("sliding_window", 4096);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_f32(key::LOGIT_SCALE, config.f32(&["logit_scale"])?);
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the vocabulary size")?);
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 1.0)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        keys.rope_scaling_or_none();
        sliding_window::unusual_pattern(keys, config, 4)
    }

    fn map_tensor(&self, _config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == "lm_head.weight" {
            return Ok(Some(Mapping::Dropped));
        }
        let is_bias = name.ends_with(".bias") && renamed(name, &[LLAMA_LIKE]).is_some();
        Ok(is_bias.then_some(Mapping::DroppedIfZero))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // One of this number of layers has full attention.
        let exported = exported.set("sliding_window_pattern", 4);
        let exported = sliding_window::export_of_pattern(model, exported);
        Some(exported.set_some("partial_rotary_factor", rotated_share(model)))
    }
}
