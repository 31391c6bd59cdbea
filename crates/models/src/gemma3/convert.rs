//! Conversion of `Gemma3ForCausalLM` and of the text model of `Gemma3ForConditionalGeneration`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, steps};
use crate::gemma;
use crate::gemma::convert::{complete, generation_keys};
use crate::gemma2::convert::{NORMS, export_generation};

pub(crate) struct Gemma3;

/// Description of [`Gemma3`].
pub(crate) static GEMMA3: Description = Description {
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    architecture: "gemma3",
    model_type: "gemma3_text",
    vocabulary: VocabularyKind::Gemma { first: false },
    tensor_names: &[NORMS, LLAMA_LIKE],
    required_flags: &[("attention_bias", false), ("use_bidirectional_attention", false)],
    ..Description::DECODER
};

impl Converter for Gemma3 {
    fn description(&self) -> &'static Description {
        &GEMMA3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config, 3)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        generation_keys(config, keys, 3)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        gemma::convert::drop_output(name)
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_generation(model, exported, 3)
    }
}
