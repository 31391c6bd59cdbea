//! Mamba and Mamba 2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Exported, Mapping, VocabularyKind};
use crate::mamba::convert::{Generation, NAMES};

pub(crate) struct Mamba2;

impl Converter for Mamba2 {
    fn classes(&self) -> &'static [&'static str] {
        &["Mamba2ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "mamba2"
    }

    fn model_type(&self) -> &'static str {
        "mamba2"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceElseBpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["gpt-2"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[NAMES]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("use_bias", false), ("use_conv_bias", true)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Generation::Second.keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Generation::Second.special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Generation::Second.export(model, exported)
    }
}
