//! EuroBERT: as llama, every token sees all others.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::{
    classifier_pooling, classifier_pooling_key, module_files, pooling_key,
};
use crate::convert::{Converter, Exported, VocabularyKind, hparams};
use crate::schema::key;

pub(crate) struct Eurobert;

impl Converter for Eurobert {
    fn classes(&self) -> &'static [&'static str] {
        &["EuroBertModel", "JinaEmbeddingsV5Model"]
    }

    fn architecture(&self) -> &'static str {
        "eurobert"
    }

    fn model_type(&self) -> &'static str {
        "eurobert"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::EuroBert
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["llama-bpe"]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false), ("mlp_bias", false)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.else_not_stretched();
        pooling_key(keys, config)?;
        classifier_pooling_key(keys, config);
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.set_some("classifier_pooling", classifier_pooling(model));
        Some(exported.files(module_files(model)))
    }
}
