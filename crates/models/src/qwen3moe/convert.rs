//! Conversion of Qwen3 models with MoE layers.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, sliding_window};
use crate::qwen2moe::convert::{
    EXPERT_NAMES, MOE_FIELDS, Qwen2moe, complete_moe_config, export_moe, moe_keys,
};

pub(crate) struct Qwen3moe;

/// Description of [`Qwen3moe`].
pub(crate) static QWEN3MOE: Description = Description {
    classes: &["Qwen3MoeForCausalLM"],
    architecture: "qwen3moe",
    model_type: "qwen3_moe",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: MOE_FIELDS,
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Qwen3moe {
    fn description(&self) -> &'static Description {
        &QWEN3MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_moe_config(config, 768, 8)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        moe_keys(config, keys, true)?;
        sliding_window::qwen(keys, config, |_, _| true)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Qwen2moe.map_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_moe(model, exported, true))
    }
}
