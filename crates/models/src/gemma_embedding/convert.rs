//! Conversion of `Gemma3TextModel` (EmbeddingGemma): Gemma 3 with pooling and the two dense layers
//! of sentence-transformers.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::{dense_keys, pooling_key};
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, sentence_transformers, steps,
};
use crate::gemma::convert::{complete, drop_output, generation_keys};
use crate::gemma2::convert::{NORMS, export_generation};
use crate::schema::{HyperParameters, key};

pub(crate) struct GemmaEmbedding;

/// Description of [`GemmaEmbedding`].
pub(crate) static GEMMA_EMBEDDING: Description = Description {
    classes: &["Gemma3TextModel"],
    architecture: "gemma-embedding",
    model_type: "gemma3_text",
    vocabulary: VocabularyKind::Gemma { first: false },
    tensor_names: &[NORMS, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for GemmaEmbedding {
    fn description(&self) -> &'static Description {
        &GEMMA_EMBEDDING
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config, 3)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        generation_keys(config, keys, 3)?;
        dense_keys(keys, config)?;
        pooling_key(keys, config)?;
        if config.bool("use_bidirectional_attention")? != Some(true) {
            keys.set(key::ATTENTION_CAUSAL, true);
        }
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(sentence_transformers::dense(name).or(drop_output(name)?))
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_encoder = !HyperParameters::from_metadata(model.metadata())
            .ok()?
            .bool("attention.causal")
            .ok()?;
        let dense = sentence_transformers::dense_names();
        let exported = exported
            .patterns(dense.iter().map(String::as_str))
            .files(sentence_transformers::module_files(model))
            .set("use_bidirectional_attention", is_encoder);
        export_generation(model, exported, 3)
    }
}
