//! Conversion of dense Granite models, and the keys and defaults of all Granite classes.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, ExtraTensors, VocabularyKind, defaults, hparams, rope, steps,
};
use crate::schema::key;

/// Keys of the multipliers, and their config.json fields.
pub(crate) const MULTIPLIERS: [(&str, &str); 4] = [
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
];

pub(crate) struct Granite;

/// Description of [`Granite`].
pub(crate) static GRANITE: Description = Description {
    classes: &["GraniteForCausalLM"],
    architecture: "granite",
    model_type: "granite",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: PRE_TOKENIZERS,
    config_fields: &MULTIPLIERS,
    ..Description::DECODER
};

impl Converter for Granite {
    fn description(&self) -> &'static Description {
        &GRANITE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        granite_keys(config, keys)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }
}

/// Preferred pre-tokenizers of Granite models.
pub(crate) const PRE_TOKENIZERS: &[&str] = &["refact", "starcoder", "dbrx"];

/// Sets the defaults of `transformers`: multipliers of 1, attention fields.
pub(crate) fn complete_config(config: &mut Config) -> Result<(), Error> {
    for (_, field) in MULTIPLIERS {
        config.default(field, 1.0);
    }
    defaults::attention(config)
}

/// Writes the keys that all Granite architectures share.
pub(crate) fn granite_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.decoder(config, None)?;
    keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the vocabulary size")?);
    let head_dim = hparams::width(config)? / hparams::head_count(config)?;
    keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
    for (key, field) in MULTIPLIERS {
        keys.set_f32(key, config.f32(&[field])?.filter(|&scale| scale != 0.0));
    }
    let shared_length = config.u32(&["shared_intermediate_size"])?.filter(|&length| length != 0);
    keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared_length);
    Ok(())
}
