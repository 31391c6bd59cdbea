//! Conversion of InternLM3, whose checkpoints have the form of Llama and a SentencePiece
//! vocabulary.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, VocabularyKind, defaults, hparams, steps};

pub(crate) struct Internlm3;

/// Description of [`Internlm3`].
pub(crate) static INTERNLM3: Description = Description {
    classes: &["InternLM3ForCausalLM"],
    architecture: "llama",
    model_type: "internlm3",
    vocabulary: VocabularyKind::InternLm3,
    ..Description::DECODER
};

impl Converter for Internlm3 {
    fn description(&self) -> &'static Description {
        &INTERNLM3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    // Exports of `llama` models are of the class `LlamaForCausalLM`.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
