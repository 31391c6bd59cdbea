//! Qwen2 and Qwen3 with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, sliding_window};
use crate::qwen2moe;
use crate::qwen2moe::convert::{EXPERT_NAMES, FIELDS, complete, export_of};

pub(crate) struct Qwen3moe;

impl Converter for Qwen3moe {
    fn classes(&self) -> &'static [&'static str] {
        &["Qwen3MoeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "qwen3moe"
    }

    fn model_type(&self) -> &'static str {
        "qwen3_moe"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[EXPERT_NAMES, LLAMA_LIKE]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        FIELDS
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false)]
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
