//! Gemma 1, 2 and 3, as text models, and the encoder made of the third.

use crate::schema::Hyper;
use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::{dense_keys, pooling_key};
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, sentence_transformers,
};
use crate::gemma;
use crate::gemma::convert::{complete, keys_of, special};
use crate::gemma2::convert::{NORMS, export_of};
use crate::schema::key;

/// The third generation as an encoder, with the matrices that `sentence-transformers` has behind it.
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
        keys_of(config, keys, 3)?;
        dense_keys(keys, config)?;
        pooling_key(keys, config)?;
        if config.bool("use_bidirectional_attention")? != Some(true) {
            keys.set(key::ATTENTION_CAUSAL, true);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(sentence_transformers::dense(name).or(special(config, name)?))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        gemma::convert::steps(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_encoder = !Hyper::of(model.metadata()).ok()?.bool("attention.causal").ok()?;
        let dense = sentence_transformers::dense_names();
        let exported = exported
            .patterns(dense.iter().map(String::as_str))
            .files(sentence_transformers::module_files(model))
            .set("use_bidirectional_attention", is_encoder);
        export_of(model, exported, 3)
    }
}
