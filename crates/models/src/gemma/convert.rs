//! Conversion of `GemmaForCausalLM`, and what the three generations share. Norm weights are stored
//! with 1 added; the tied output projection is dropped.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Mapping, VocabularyKind, hparams, sliding_window, steps,
};
use crate::schema::key;

pub(crate) struct Gemma;

/// Description of [`Gemma`].
pub(crate) static GEMMA: Description = Description {
    classes: &["GemmaForCausalLM"],
    architecture: "gemma",
    model_type: "gemma",
    vocabulary: VocabularyKind::Gemma { first: true },
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Gemma {
    fn description(&self) -> &'static Description {
        &GEMMA
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config, 1)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        generation_keys(config, keys, 1)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        drop_output(name)
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }
}

/// Sets the defaults of the class of a generation.
pub(crate) fn complete(config: &mut Config, generation: u32) -> Result<(), Error> {
    config.default("head_dim", 256);
    config.default("rms_norm_eps", 1e-6);
    match generation {
        1 => config.default("max_position_embeddings", 8192),
        2 => {
            config.default("max_position_embeddings", 8192);
            config.default("attn_logit_softcapping", 50.0);
            config.default("final_logit_softcapping", 30.0);
            config.default("sliding_window", 4096);
        }
        _ => {
            // Multimodal checkpoints state few fields of their text model.
            config.default("max_position_embeddings", 131_072);
            config.default("num_attention_heads", 8);
            config.default("num_key_value_heads", 4);
            config.default("sliding_window", 4096);
            config.default("rope_theta", 1e6);
            config.default("rope_local_base_freq", 1e4);
        }
    }
    Ok(())
}

/// Writes the hyper-parameters of a generation.
pub(crate) fn generation_keys(
    config: &Config,
    keys: &mut Keys,
    generation: u32,
) -> Result<(), Error> {
    let head_dim = config.require_u32(&["head_dim"], "the head dimension")?;
    if generation == 3 {
        keys.stated(config)?;
        if let Some(cap) = config.f32(&["final_logit_softcapping"])?.filter(|&cap| cap != 0.0) {
            keys.set(key::FINAL_LOGIT_SOFTCAPPING, cap);
        }
        if config.u32(&["sliding_window_pattern"])? != Some(1) {
            keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
            sliding_window::unusual_pattern(keys, config, 6)?;
        }
        return Ok(());
    }
    keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
    keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
    keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
    keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
    keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
    keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
    keys.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(&["rms_norm_eps"])?);
    keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
    keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
    keys.file_type();
    if generation == 2 {
        for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
            keys.set_f32(cap, config.f32(&[cap])?);
        }
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        sliding_window::unusual_pattern(keys, config, 2)?;
    }
    keys.rope_unless_default(config)
}

/// Drops the output projection, which is tied to the embedding.
pub(crate) fn drop_output(name: &str) -> Result<Option<Mapping>, Error> {
    // The output projection is tied to the embedding; some checkpoints hold it twice.
    let is_output = matches!(name, "lm_head.weight" | "model.lm_head.weight");
    Ok(is_output.then_some(Mapping::Dropped))
}
