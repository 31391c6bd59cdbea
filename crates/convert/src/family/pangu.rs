//! openPangu Embedded: as llama, with a bias behind attention.

use super::{Family, Mapping, hyper};
use crate::vocab;

pub(super) static PANGU_EMBEDDED: Family = Family {
    classes: &["PanguEmbeddedForCausalLM"],
    architecture: "pangu-embedded",
    model_type: "PanguEmbedded",
    vocabulary: vocab::Kind::SentencePieceThenPrefix,
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.llama_like(config, hyper::stated_head_dim(config)?)?;
        let head_dim = hyper::head_dim(config)?;
        keys.set("attention.key_length", head_dim);
        keys.set("attention.value_length", head_dim);
        Ok(())
    },
    special: |config, name| {
        let is_tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        Ok((is_tied && name == "lm_head.weight").then_some(Mapping::Dropped))
    },
    export: |model, exported| {
        Some(exported.set("bias", super::exported::has(model, "blk.0.attn_output.bias")))
    },
    ..Family::DEFAULT
};
