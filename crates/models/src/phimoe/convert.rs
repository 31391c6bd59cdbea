//! Phi 3.5 with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, hparams};
use crate::llama::convert::{EXPERT_NAMES, experts_of_mixtral, patterns_of_mixtral};
use crate::phi3::convert::Phi3;
use crate::schema::key;

pub(crate) struct Phimoe;

impl Converter for Phimoe {
    fn base(&self) -> &'static dyn Converter {
        &Phi3
    }

    fn classes(&self) -> &'static [&'static str] {
        &["PhiMoEForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "phimoe"
    }

    fn model_type(&self) -> &'static str {
        "phimoe"
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[LLAMA_LIKE, EXPERT_NAMES]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", true), ("lm_head_bias", true)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Phi3.hyper_parameters(config, keys)?;
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&["num_experts_per_tok"])?);
        keys.set(key::EXPERT_COUNT, hparams::expert_count(config)?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        experts_of_mixtral(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = Phi3
            .export(model, exported)?
            .patterns(patterns_of_mixtral())
            .fields(&[("expert_count", "num_local_experts")])
            .set("attention_bias", true)
            .set("lm_head_bias", true);
        Some(exported)
    }
}
