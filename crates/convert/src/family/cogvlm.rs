//! CogVLM: images go through matrices of their own.

use super::hyper;
use super::names::{LLAMA_LIKE, Table};
use super::{Family, Mapping};
use crate::vocab;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.language_expert_query_key_value", "blk.{}.attn_qkv"),
    ("model.layers.{}.self_attn.language_expert_dense", "blk.{}.attn_output"),
    ("model.layers.{}.mlp.language_mlp.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.mlp.language_mlp.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.language_mlp.down_proj", "blk.{}.ffn_down"),
    ("model.layers.{}.self_attn.vision_expert_query_key_value", "blk.{}.vis_attn_qkv"),
    ("model.layers.{}.self_attn.vision_expert_dense", "blk.{}.vis_attn_output"),
    ("model.layers.{}.mlp.vision_mlp.gate_proj", "blk.{}.vis_gate"),
    ("model.layers.{}.mlp.vision_mlp.up_proj", "blk.{}.vis_up"),
    ("model.layers.{}.mlp.vision_mlp.down_proj", "blk.{}.vis_down"),
];

pub(super) static COGVLM: Family = Family {
    classes: &["CogVLMForCausalLM"],
    architecture: "cogvlm",
    model_type: "cogvlm",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["llama-bpe"],
    names: &[NAMES, LLAMA_LIKE],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    },
    special: |_, name| Ok(name.starts_with("model.vision.").then_some(Mapping::Unknown)),
    ..Family::DEFAULT
};
