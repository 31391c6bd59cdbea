//! EuroBERT: as llama, every token sees all others.

use super::modules::{classifier_pooling, classifier_pooling_key, module_files, pooling_key};
use super::{Family, hyper};
use crate::vocab;

pub(super) static EUROBERT: Family = Family {
    classes: &["EuroBertModel", "JinaEmbeddingsV5Model"],
    architecture: "eurobert",
    model_type: "eurobert",
    vocabulary: vocab::Kind::EuroBert,
    pre_tokenizers: &["llama-bpe"],
    expects: &[("attention_bias", false), ("mlp_bias", false)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("attention.causal", false);
        keys.else_not_stretched();
        pooling_key(keys, config)?;
        classifier_pooling_key(keys, config);
        Ok(())
    },
    export: |model, exported| {
        let exported = exported.set_some("classifier_pooling", classifier_pooling(model));
        Some(exported.files(module_files(model)))
    },
    ..Family::DEFAULT
};
