//! Conversion of Llama embedding models with bidirectional attention.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, ExtraTensors, VocabularyKind, hparams, rope, steps};
use crate::schema::key;

pub(crate) struct LlamaEmbed;

/// Description of [`LlamaEmbed`].
pub(crate) static LLAMA_EMBED: Description = Description {
    classes: &["LlamaBidirectionalModel"],
    architecture: "llama-embed",
    model_type: "llama_bidirec",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["llama-bpe"],
    ..Description::DECODER
};

impl Converter for LlamaEmbed {
    fn description(&self) -> &'static Description {
        &LLAMA_EMBED
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }
}
