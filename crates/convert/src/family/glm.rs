//! GLM 4.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::{has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family};
use crate::vocab;

/// Norms stand before and after attention and feed-forward; gate and what it gates are one matrix.
const NAMES: Table = &[
    ("model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

pub(super) static GLM4: Family = Family {
    classes: &["Glm4ForCausalLM"],
    architecture: "glm4",
    model_type: "glm4",
    vocabulary: vocab::Kind::Glm4,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    names: &[NAMES, LLAMA_LIKE],
    complete,
    keys,
    export,
    ..Family::DEFAULT
};

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("head_dim", 128);
    config.default("rms_norm_eps", 1.5625e-7);
    hyper::default_attention(config)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)?;
    keys.set("rope.dimension_count", rotated);
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported
        .set_some("partial_rotary_factor", rotated_share(model))
        .set("attention_bias", has(model, "blk.0.attn_q.bias"));
    Some(exported)
}
