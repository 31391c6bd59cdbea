//! Conversion of Phi-3.5-MoE: as Phi-3 with separate QKV matrices and the experts of Mixtral.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, hparams};
use crate::llama::convert::{ROUTER_NAMES, map_mixtral_expert, mixtral_expert_patterns};
use crate::phi3::convert::{PHI3, Phi3};
use crate::schema::key;

pub(crate) struct Phimoe;

/// Description of [`Phimoe`].
pub(crate) static PHIMOE: Description = Description {
    classes: &["PhiMoEForCausalLM"],
    architecture: "phimoe",
    model_type: "phimoe",
    tensor_names: &[LLAMA_LIKE, ROUTER_NAMES],
    required_flags: &[("attention_bias", true), ("lm_head_bias", true)],
    ..PHI3
};

impl Converter for Phimoe {
    fn description(&self) -> &'static Description {
        &PHIMOE
    }

    fn base(&self) -> &'static dyn Converter {
        &Phi3
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Phi3.hyper_parameters(config, keys)?;
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&["num_experts_per_tok"])?);
        keys.set(key::EXPERT_COUNT, hparams::expert_count(config)?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_mixtral_expert(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = Phi3
            .export(model, exported)?
            .patterns(mixtral_expert_patterns())
            .fields(&[("expert_count", "num_local_experts")])
            .set("attention_bias", true)
            .set("lm_head_bias", true);
        Some(exported)
    }
}
