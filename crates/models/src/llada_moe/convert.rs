//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, moe};
use crate::dream::convert::{MASK, masked};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct LladaMoe;

impl Converter for LladaMoe {
    fn classes(&self) -> &'static [&'static str] {
        &["LLaDAMoEModelLM", "LLaDAMoEModel"]
    }

    fn architecture(&self) -> &'static str {
        "llada-moe"
    }

    fn model_type(&self) -> &'static str {
        "llada"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["llada-moe"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[EXPERT_NAMES, LLAMA_LIKE]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[(key::EXPERT_FEED_FORWARD_LENGTH, LLADA_WIDTH)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(&[LLADA_WIDTH])?);
        let id = config.u32(&["mask_token_id"])?.unwrap_or(LLADA_MASK);
        keys.before_vocabulary(MASK, id);
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.before_vocabulary("diffusion.shift_logits", false);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let width = || config.require_u32(&[LLADA_WIDTH], "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(masked(model, exported.patterns(moe::one_by_one())))
    }
}

const LLADA_WIDTH: &str = "expert_intermediate_size";

/// `<|mask|>` in all models of the class, whose configurations do not tell.
const LLADA_MASK: u32 = 156895;
