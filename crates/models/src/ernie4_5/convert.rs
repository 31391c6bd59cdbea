//! Conversion of `Ernie4_5ForCausalLM`. Rows are not permuted: the checkpoint has the interleaved
//! RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::{Converter, Description, VocabularyKind, defaults};

pub(crate) struct Ernie45;

/// Description of [`Ernie45`].
pub(crate) static ERNIE45: Description = Description {
    classes: &["Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"],
    architecture: "ernie4_5",
    model_type: "ernie4_5",
    vocabulary: VocabularyKind::SentencePieceThenPrefix,
    ..Description::DECODER
};

impl Converter for Ernie45 {
    fn description(&self) -> &'static Description {
        &ERNIE45
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)
    }
}

pub(crate) fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    defaults::attention(config)
}
