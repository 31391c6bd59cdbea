//! Qwen2 and Qwen3 with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, sliding_window};
use crate::qwen2moe;
use crate::qwen2moe::convert::{EXPERT_NAMES, FIELDS, complete, export_of};

pub(crate) struct Qwen3moe;

/// Description of [`Qwen3moe`].
pub(crate) static QWEN3MOE: Description = Description {
    classes: &["Qwen3MoeForCausalLM"],
    architecture: "qwen3moe",
    model_type: "qwen3_moe",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Qwen3moe {
    fn description(&self) -> &'static Description {
        &QWEN3MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config, 768, 8)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        qwen2moe::convert::keys(config, keys, true)?;
        sliding_window::qwen(keys, config, |_, _| true)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        qwen2moe::convert::special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_of(model, exported, true))
    }
}
