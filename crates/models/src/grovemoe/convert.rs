//! Conversion of GroveMoE, whose experts form groups of two that share a smaller expert.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, captures};
use crate::convert::{Converter, Description, ExpertSlot, Exported, Mapping, hparams, moe};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

/// Matrices of the group experts, and their stacked GGUF tensors.
const GROUP_EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.mlp.chunk_experts.{}.gate_proj.weight", "ffn_gate_chexps"),
    ("model.layers.{}.mlp.chunk_experts.{}.down_proj.weight", "ffn_down_chexps"),
    ("model.layers.{}.mlp.chunk_experts.{}.up_proj.weight", "ffn_up_chexps"),
];

/// Experts per group: a constant of the class, which config.json does not state.
const EXPERTS_PER_GROUP: u32 = 2;

/// Weight of group experts: a constant of the class.
const GROUP_SCALE: f32 = 0.05;

/// Default FFN size of group experts.
const DEFAULT_GROUP_LENGTH: u32 = 128;

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
        let length = hparams::stated_head_dim(config)?.filter(|&length| length > 0);
        keys.set(key::EXPERT_CHUNK_FEED_FORWARD_LENGTH, length.unwrap_or(DEFAULT_GROUP_LENGTH));
        keys.set(key::EXPERTS_PER_GROUP, EXPERTS_PER_GROUP);
        keys.set(key::EXPERT_GROUP_SCALE, GROUP_SCALE);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // The class has this bias and does not use it.
        if name.ends_with(".expert_bias") {
            return Ok(Some(Mapping::Dropped));
        }
        for (hf_name, gguf_name) in GROUP_EXPERTS {
            let Some(&[block, index]) = captures(hf_name, name).as_deref() else { continue };
            let count = hparams::expert_count(config)? / EXPERTS_PER_GROUP;
            let name = format!("blk.{block}.{gguf_name}.weight");
            let slot = Mapping::slot(name, ExpertSlot { index, count });
            return Ok(Some(if index < count { slot } else { Mapping::Unknown }));
        }
        moe::mapping(config, name, || moe::width(config))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(moe::one_by_one()).patterns(GROUP_EXPERTS.map(|(name, _)| name)))
    }
}
