//! Seed-OSS: as llama without its order of rows; the second norm has another name.

use super::names::{LLAMA_LIKE, Table};
use super::{Family, hyper};

const NORM: Table = &[("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm")];

pub(super) static SEED_OSS: Family = Family {
    classes: &["SeedOssForCausalLM"],
    architecture: "seed_oss",
    model_type: "seed_oss",
    pre_tokenizers: &["seed-coder"],
    names: &[NORM, LLAMA_LIKE],
    expects: &[("attention_out_bias", false), ("mlp_bias", false)],
    complete: |config| {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1e-6);
        hyper::default_attention(config)
    },
    export: |model, exported| {
        let has_bias = super::exported::has(model, "blk.0.attn_q.bias");
        Some(exported.set("attention_bias", has_bias).set("attention_out_bias", false))
    },
    ..Family::DEFAULT
};
