//! Arcee: as llama, with feed-forward layers without gates.

use super::modules::pooling_key;
use super::{Family, hyper};
use crate::vocab;

pub(super) static ARCEE: Family = Family {
    classes: &["ArceeForCausalLM"],
    architecture: "arcee",
    model_type: "arcee",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["llama-bpe"],
    expects: &[("attention_bias", false), ("mlp_bias", false)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.llama_like(config, Some(hyper::head_dim(config)?))?;
        pooling_key(keys, config)
    },
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    ..Family::DEFAULT
};
