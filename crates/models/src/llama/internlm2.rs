//! InternLM2, and InternLM3, which is as llama.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, Exported, VocabularyKind, hparams};

pub(crate) struct Internlm3;

impl Converter for Internlm3 {
    fn classes(&self) -> &'static [&'static str] {
        &["InternLM3ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "llama"
    }

    fn model_type(&self) -> &'static str {
        "internlm3"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::InternLm3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    // It comes back as llama.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
