//! Conversion of `EuroBertModel` and `JinaEmbeddingsV5Model`: as Llama in NeoX layout, with
//! bidirectional attention and the pooling type.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::{
    classifier_pooling, classifier_pooling_key, module_files, pooling_key,
};
use crate::convert::{Converter, Description, Exported, VocabularyKind, defaults, hparams};
use crate::schema::key;

pub(crate) struct Eurobert;

/// Description of [`Eurobert`].
pub(crate) static EUROBERT: Description = Description {
    classes: &["EuroBertModel", "JinaEmbeddingsV5Model"],
    architecture: "eurobert",
    model_type: "eurobert",
    vocabulary: VocabularyKind::EuroBert,
    pre_tokenizers: &["llama-bpe"],
    required_flags: &[("attention_bias", false), ("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for Eurobert {
    fn description(&self) -> &'static Description {
        &EUROBERT
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.rope_scaling_or_none();
        pooling_key(keys, config)?;
        classifier_pooling_key(keys, config);
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.set_some("classifier_pooling", classifier_pooling(model));
        Some(exported.files(module_files(model)))
    }
}
