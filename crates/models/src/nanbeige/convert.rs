//! Nanbeige 4.2: as llama, its layers run through several times.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, ExtraTensors, VocabularyKind, hparams};
use crate::schema::key;

pub(crate) struct Nanbeige;

impl Converter for Nanbeige {
    fn classes(&self) -> &'static [&'static str] {
        &["NanbeigeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "nanbeige"
    }

    fn model_type(&self) -> &'static str {
        "nanbeige"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Llama
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[(key::NUM_LOOPS, "num_loops"), (key::SKIP_LOOP_FINAL_NORM, "skip_loop_final_norm")]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)?;
        keys.set(key::NUM_LOOPS, config.u32(&["num_loops"])?.unwrap_or(1).max(1));
        keys.set(key::SKIP_LOOP_FINAL_NORM, config.bool("skip_loop_final_norm")?.unwrap_or(false));
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        hparams::rope_freqs(config)
    }
}
