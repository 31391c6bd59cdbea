//! Conversion of Nanbeige 4.2, as of llama with the number of loops.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, ExtraTensors, VocabularyKind, defaults, hparams, rope, steps,
};
use crate::schema::key;

pub(crate) struct Nanbeige;

/// Description of [`Nanbeige`].
pub(crate) static NANBEIGE: Description = Description {
    classes: &["NanbeigeForCausalLM"],
    architecture: "nanbeige",
    model_type: "nanbeige",
    vocabulary: VocabularyKind::Llama,
    config_fields: &[
        (key::NUM_LOOPS, "num_loops"),
        (key::SKIP_LOOP_FINAL_NORM, "skip_loop_final_norm"),
    ],
    ..Description::DECODER
};

impl Converter for Nanbeige {
    fn description(&self) -> &'static Description {
        &NANBEIGE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)?;
        keys.set(key::NUM_LOOPS, config.u32(&["num_loops"])?.unwrap_or(1).max(1));
        keys.set(key::SKIP_LOOP_FINAL_NORM, config.bool("skip_loop_final_norm")?.unwrap_or(false));
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }
}
