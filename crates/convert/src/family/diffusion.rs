//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::Keys;
use super::modules::pooling_key;
use super::names::LLAMA_LIKE;
use super::qwen_moe::EXPERT_NAMES;
use super::{Exported, Family, experts};
use crate::vocab;

pub(super) static DREAM: Family = Family {
    classes: &["DreamModel"],
    architecture: "dream",
    model_type: "Dream",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    keys: |config, keys| {
        keys.stated(config)?;
        pooling_key(keys, config)?;
        keys.set("attention.causal", false);
        mask(config, keys)
    },
    export: |model, exported| Some(masked(model, exported)),
    ..Family::DEFAULT
};

pub(super) static RND1: Family = Family {
    classes: &["RND1"],
    architecture: "rnd1",
    model_type: "rnd1",
    pre_tokenizers: &["qwen2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
        keys.set("attention.causal", false);
        mask(config, keys)
    },
    special: |config, name| {
        let width = || config.require_u32(experts::WIDTH, "the width of an expert");
        experts::mapping(config, name, width)
    },
    export: |model, exported| Some(masked(model, exported.patterns(experts::one_by_one()))),
    ..Family::DEFAULT
};

pub(super) static LLADA_MOE: Family = Family {
    classes: &["LLaDAMoEModelLM", "LLaDAMoEModel"],
    architecture: "llada-moe",
    model_type: "llada",
    pre_tokenizers: &["llada-moe"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    fields: &[("expert_feed_forward_length", LLADA_WIDTH)],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set_u32("expert_feed_forward_length", config.u32(&[LLADA_WIDTH])?);
        let id = config.u32(&["mask_token_id"])?.unwrap_or(LLADA_MASK);
        keys.before_vocabulary(MASK, id);
        keys.set("attention.causal", false);
        keys.before_vocabulary("diffusion.shift_logits", false);
        Ok(())
    },
    special: |config, name| {
        let width = || config.require_u32(&[LLADA_WIDTH], "the width of an expert");
        experts::mapping(config, name, width)
    },
    export: |model, exported| Some(masked(model, exported.patterns(experts::one_by_one()))),
    ..Family::DEFAULT
};

const LLADA_WIDTH: &str = "expert_intermediate_size";
/// `<|mask|>` in all models of the class, whose configurations do not tell.
const LLADA_MASK: u32 = 156895;

const MASK: &str = "tokenizer.ggml.mask_token_id";

/// The token that stands for one which is not known yet.
fn mask(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(id) = config.u32(&["mask_token_id"])? {
        keys.before_vocabulary(MASK, id);
    }
    Ok(())
}

fn masked(model: &Model, exported: Exported) -> Exported {
    exported.set_some("mask_token_id", model.metadata().u64(MASK))
}
