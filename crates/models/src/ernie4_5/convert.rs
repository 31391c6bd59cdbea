//! Ernie 4.5, dense and with experts, and what reads with it.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::{Converter, VocabularyKind, hparams};

pub(crate) struct Ernie45;

impl Converter for Ernie45 {
    fn classes(&self) -> &'static [&'static str] {
        &["Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "ernie4_5"
    }

    fn model_type(&self) -> &'static str {
        "ernie4_5"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceThenPrefix
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)
    }
}

pub(crate) fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    hparams::default_attention(config)
}
