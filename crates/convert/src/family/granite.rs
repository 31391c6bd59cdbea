//! Granite, dense and with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::experts::halves;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures};
use super::{Exported, Family, Mapping, exported};
use crate::vocab;

/// The experts, all in one tensor.
pub(super) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps"),
];

/// Gates and what they gate, of all experts and of the one that is always asked.
const EXPERTS: &str = "model.layers.{}.block_sparse_moe.input_linear.weight";
const SHARED: &str = "model.layers.{}.shared_mlp.input_linear.weight";
const SHARED_DOWN: &str = "model.layers.{}.shared_mlp.output_linear.weight";

/// By how much parts of the model scale: key and field.
pub(super) const SCALES: [(&str, &str); 4] = [
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
];

pub(super) static GRANITE: Family = Family {
    classes: &["GraniteForCausalLM"],
    architecture: "granite",
    model_type: "granite",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: PRE_TOKENIZERS,
    fields: &SCALES,
    complete,
    keys: granite_keys,
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    ..Family::DEFAULT
};

pub(super) static GRANITE_MOE: Family = Family {
    classes: &[GRANITE_MOE_CLASS, GRANITE_MOE_SHARED],
    architecture: "granitemoe",
    model_type: "granitemoe",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: PRE_TOKENIZERS,
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    fields: &SCALES,
    complete: complete_experts,
    keys: granite_keys,
    special,
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

const GRANITE_MOE_CLASS: &str = "GraniteMoeForCausalLM";
const GRANITE_MOE_SHARED: &str = "GraniteMoeSharedForCausalLM";

const PRE_TOKENIZERS: &[&str] = &["refact", "starcoder", "dbrx"];

fn complete(config: &mut Config) -> Result<(), Error> {
    for (_, field) in SCALES {
        config.default(field, 1.0);
    }
    hyper::default_attention(config)
}

fn complete_experts(config: &mut Config) -> Result<(), Error> {
    config.default("num_local_experts", 8);
    config.default("num_experts_per_tok", 2);
    // Without experts, the one that is always asked is all there is.
    if !has_experts(config)? {
        let width = config.require_u32(&["shared_intermediate_size"], "its width")?;
        config.set("intermediate_size", width);
        config.set("num_experts_per_tok", 0);
    }
    complete(config)
}

fn has_experts(config: &Config) -> Result<bool, Error> {
    Ok(config.u32(&["num_local_experts"])?.is_some_and(|count| count > 0))
}

/// The keys of all Granites.
pub(super) fn granite_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.decoder(config, None)?;
    keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
    let head_dim = hyper::width(config)? / hyper::head_count(config)?;
    keys.set("rope.dimension_count", head_dim);
    for (key, field) in SCALES {
        keys.set_f32(key, config.f32(&[field])?.filter(|&scale| scale != 0.0));
    }
    let shared = config.u32(&["shared_intermediate_size"])?.filter(|&width| width != 0);
    keys.set_u32("expert_shared_feed_forward_length", shared);
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(&[block]) = captures(EXPERTS, name).as_deref() {
        let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}_exps"));
        let count = hyper::expert_count(config)?;
        return Ok(Some(halves(names, count, hyper::feed_forward(config)?)));
    }
    let suffix = if has_experts(config)? { "_shexp" } else { "" };
    if let Some(&[block]) = captures(SHARED, name).as_deref() {
        let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}{suffix}"));
        let width = config.require_u32(&["shared_intermediate_size"], "its width")?;
        return Ok(Some(halves(names, 1, width)));
    }
    if let Some(&[block]) = captures(SHARED_DOWN, name).as_deref() {
        return Ok(Some(Mapping::one(format!("blk.{block}.ffn_down{suffix}.weight"), [])));
    }
    Ok(None)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let count = |key| exported::count(model, key).filter(|&count| count != 0);
    let shared = "expert_shared_feed_forward_length";
    let has_shared = count(shared).is_some();
    let (class, model_type) = match has_shared {
        true => (GRANITE_MOE_SHARED, "granitemoeshared"),
        false => (GRANITE_MOE_CLASS, "granitemoe"),
    };
    let mut exported = exported
        .class(class, model_type)
        .patterns(count("expert_count").is_some().then_some(EXPERTS))
        .patterns(has_shared.then_some([SHARED, SHARED_DOWN]).into_iter().flatten())
        .fields(&[("expert_count", "num_local_experts"), (shared, "shared_intermediate_size")]);
    // What is always asked bears the usual names only in dense models.
    exported.patterns.retain(|name| !name.contains(".mlp."));
    Some(exported)
}
