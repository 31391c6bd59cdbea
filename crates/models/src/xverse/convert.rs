//! Conversion of XVERSE: as llama, with a vocabulary without scores.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, VocabularyKind, hparams, steps};
use crate::schema::key;

pub(crate) struct Xverse;

/// Description of [`Xverse`].
pub(crate) static XVERSE: Description = Description {
    classes: &["XverseForCausalLM"],
    architecture: "xverse",
    model_type: "xverse",
    vocabulary: VocabularyKind::Xverse,
    ..Description::DECODER
};

impl Converter for Xverse {
    fn description(&self) -> &'static Description {
        &XVERSE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::TENSOR_DATA_LAYOUT, "Meta AI original pth");
        keys.set(
            key::ROPE_DIMENSION_COUNT,
            hparams::width(config)? / hparams::head_count(config)?.max(1),
        );
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }
}
