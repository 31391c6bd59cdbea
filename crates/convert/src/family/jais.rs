//! Jais 2: norms with bias, feed-forward layers without gates.

use super::names::LLAMA_LIKE;
use super::{Family, hyper};

pub(super) static JAIS2: Family = Family {
    classes: &["Jais2ForCausalLM"],
    architecture: "jais2",
    model_type: "jais2",
    pre_tokenizers: &["jais-2"],
    names: &[LLAMA_LIKE],
    fields: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    expects: &[("attention_bias", true), ("mlp_bias", true)],
    complete: |config| {
        config.default("layer_norm_eps", 1e-5);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    },
    ..Family::DEFAULT
};
