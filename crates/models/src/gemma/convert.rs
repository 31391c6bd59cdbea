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

/// Fails unless queries are scaled as runtimes do it, for which there is no key: by the head size, in models of 27 B
/// parameters, which runtimes recognize by their number of layers, by the embedding size divided by the number of heads.
///
/// # Errors
/// If they are not, or a field has an invalid value.
pub(crate) fn require_query_scale(config: &Config, layers_of_27b: u32) -> Result<(), Error> {
    const FIELD: &str = "query_pre_attn_scalar";
    let computed = match hparams::block_count(config)? == layers_of_27b {
        true => f64::from(hparams::width(config)?) / f64::from(hparams::head_count(config)?),
        false => f64::from(config.require_u32(&["head_dim"], "the head dimension")?),
    };
    let stated = config.f64(&[FIELD])?.unwrap_or(256.0);
    if stated == computed {
        return Ok(());
    }
    let what = format!(
        "`{FIELD}` is {stated}, which llama.cpp does not support: GGUF has no key for it, and every program that loads the \
         converted model would compute with {computed}"
    );
    let help = format!(
        "a conversion would change the results of this model; if the field is wrong, set it to {computed}"
    );
    Err(Error::input("config-unsupported", config.path(), what, help))
}

/// Writes the hyper-parameters of a generation.
pub(crate) fn generation_keys(
    config: &Config,
    keys: &mut Keys,
    generation: u32,
) -> Result<(), Error> {
    let head_dim = config.require_u32(&["head_dim"], "the head dimension")?;
    match generation {
        2 => require_query_scale(config, 46)?,
        3 => require_query_scale(config, 62)?,
        _ => {}
    }
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
