//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, moe};
use crate::dream::convert::{MASK_TOKEN_ID, export_mask_token};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct LladaMoe;

/// Description of [`LladaMoe`].
pub(crate) static LLADA_MOE: Description = Description {
    classes: &["LLaDAMoEModelLM", "LLaDAMoEModel"],
    architecture: "llada-moe",
    model_type: "llada",
    pre_tokenizers: &["llada-moe"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: &[(key::EXPERT_FEED_FORWARD_LENGTH, LLADA_WIDTH)],
    ..Description::DECODER
};

impl Converter for LladaMoe {
    fn description(&self) -> &'static Description {
        &LLADA_MOE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(&[LLADA_WIDTH])?);
        let id = config.u32(&["mask_token_id"])?.unwrap_or(LLADA_MASK);
        keys.before_vocabulary(MASK_TOKEN_ID, id);
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.before_vocabulary("diffusion.shift_logits", false);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let width = || config.require_u32(&[LLADA_WIDTH], "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_mask_token(model, exported.patterns(moe::one_by_one())))
    }
}

const LLADA_WIDTH: &str = "expert_intermediate_size";

/// `<|mask|>` in all models of the class, whose configurations do not tell.
const LLADA_MASK: u32 = 156895;
