//! Phi 3.5 with experts.

use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper;
use super::llama::{EXPERT_NAMES, experts_of_mixtral, patterns_of_mixtral};
use super::names::LLAMA_LIKE;
use super::phi::PHI3;
use super::{Exported, Family};

pub(super) static PHIMOE: Family = Family {
    classes: &["PhiMoEForCausalLM"],
    architecture: "phimoe",
    model_type: "phimoe",
    names: &[LLAMA_LIKE, EXPERT_NAMES],
    expects: &[("attention_bias", true), ("lm_head_bias", true)],
    keys: |config, keys| {
        (PHI3.keys)(config, keys)?;
        keys.set_u32("expert_used_count", config.u32(&["num_experts_per_tok"])?);
        keys.set("expert_count", hyper::expert_count(config)?);
        Ok(())
    },
    special: |config: &Config, name| experts_of_mixtral(config, name),
    export,
    ..PHI3
};

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = (PHI3.export)(model, exported)?
        .patterns(patterns_of_mixtral())
        .fields(&[("expert_count", "num_local_experts")])
        .set("attention_bias", true)
        .set("lm_head_bias", true);
    Some(exported)
}
