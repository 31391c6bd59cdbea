//! GroveMoE: experts of a group share a smaller one.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, captures};
use crate::convert::{Converter, Description, ExpertSlot, Exported, Mapping, hparams, moe};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

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

pub(crate) struct GroveMoe;

/// Description of [`GroveMoe`].
pub(crate) static GROVE_MOE: Description = Description {
    classes: &["GroveMoeForCausalLM", "modeling_grove_moe.GroveMoeForCausalLM"],
    architecture: "grovemoe",
    model_type: "grove_moe",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for GroveMoe {
    fn description(&self) -> &'static Description {
        &GROVE_MOE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        let width = hparams::stated_head_dim(config)?.filter(|&width| width > 0);
        keys.set(key::EXPERT_CHUNK_FEED_FORWARD_LENGTH, width.unwrap_or(WIDTH));
        keys.set(key::EXPERTS_PER_GROUP, IN_A_GROUP);
        keys.set(key::EXPERT_GROUP_SCALE, SHARE);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // The class has it and does not use it.
        if name.ends_with(".expert_bias") {
            return Ok(Some(Mapping::Dropped));
        }
        for (foreign, ours) in SHARED {
            let Some(&[block, index]) = captures(foreign, name).as_deref() else { continue };
            let count = hparams::expert_count(config)? / IN_A_GROUP;
            let name = format!("blk.{block}.{ours}.weight");
            let slot = Mapping::slot(name, ExpertSlot { index, count });
            return Ok(Some(if index < count { slot } else { Mapping::Unknown }));
        }
        let width = || config.require_u32(moe::WIDTH, "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(moe::one_by_one()).patterns(SHARED.map(|(name, _)| name)))
    }
}
