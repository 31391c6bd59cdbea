//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, moe};
use crate::dream::convert::{mask, masked};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct Rnd1;

impl Converter for Rnd1 {
    fn classes(&self) -> &'static [&'static str] {
        &["RND1"]
    }

    fn architecture(&self) -> &'static str {
        "rnd1"
    }

    fn model_type(&self) -> &'static str {
        "rnd1"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[EXPERT_NAMES, LLAMA_LIKE]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set(key::ATTENTION_CAUSAL, false);
        mask(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let width = || config.require_u32(moe::WIDTH, "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(masked(model, exported.patterns(moe::one_by_one())))
    }
}
