//! Conversion of Mamba 2, shared with Mamba.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind};
use crate::mamba::convert::{NAMES, Version};

pub(crate) struct Mamba2;

/// Description of [`Mamba2`].
pub(crate) static MAMBA2: Description = Description {
    classes: &["Mamba2ForCausalLM"],
    architecture: "mamba2",
    model_type: "mamba2",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[NAMES],
    required_flags: &[("use_bias", false), ("use_conv_bias", true)],
    ..Description::DECODER
};

impl Converter for Mamba2 {
    fn description(&self) -> &'static Description {
        &MAMBA2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Version::Mamba2.keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Version::Mamba2.map_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Version::Mamba2.export(model, exported)
    }
}
