//! GroveMoE: experts of a group share a smaller one.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, captures};
use super::qwen_moe::EXPERT_NAMES;
use super::{ExpertSlot, Exported, Family, Mapping, experts};

/// The shared expert of each group: foreign name of one, our name of all.
const SHARED: [(&str, &str); 3] = [
    ("model.layers.{}.mlp.chunk_experts.{}.gate_proj.weight", "ffn_gate_chexps"),
    ("model.layers.{}.mlp.chunk_experts.{}.down_proj.weight", "ffn_down_chexps"),
    ("model.layers.{}.mlp.chunk_experts.{}.up_proj.weight", "ffn_up_chexps"),
];

/// What the class of the models states in its code, not in their configurations.
const IN_A_GROUP: u32 = 2;
const SHARE: f32 = 0.05;
const WIDTH: u32 = 128;

pub(super) static GROVE_MOE: Family = Family {
    classes: &["GroveMoeForCausalLM", "modeling_grove_moe.GroveMoeForCausalLM"],
    architecture: "grovemoe",
    model_type: "grove_moe",
    pre_tokenizers: &["qwen2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    keys,
    special,
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
    let width = hyper::stated_head_dim(config)?.filter(|&width| width > 0);
    keys.set("expert_chunk_feed_forward_length", width.unwrap_or(WIDTH));
    keys.set("experts_per_group", IN_A_GROUP);
    keys.set("expert_group_scale", SHARE);
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // The class has it and does not use it.
    if name.ends_with(".expert_bias") {
        return Ok(Some(Mapping::Dropped));
    }
    for (foreign, ours) in SHARED {
        let Some(&[block, index]) = captures(foreign, name).as_deref() else { continue };
        let count = hyper::expert_count(config)? / IN_A_GROUP;
        let name = format!("blk.{block}.{ours}.weight");
        let slot = Mapping::slot(name, ExpertSlot { index, count });
        return Ok(Some(if index < count { slot } else { Mapping::Unknown }));
    }
    let width = || config.require_u32(experts::WIDTH, "the width of an expert");
    experts::mapping(config, name, width)
}

fn export(_: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.patterns(experts::one_by_one()).patterns(SHARED.map(|(name, _)| name)))
}
