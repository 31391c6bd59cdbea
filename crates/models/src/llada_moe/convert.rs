//! Conversion of LLaDA-MoE: bidirectional attention, diffusion keys, and a mask token that
//! config.json may leave out.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, moe};
use crate::dream::convert::export_mask_token;
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
    config_fields: &[(key::EXPERT_FEED_FORWARD_LENGTH, EXPERT_LENGTH)],
    ..Description::DECODER
};

impl Converter for LladaMoe {
    fn description(&self) -> &'static Description {
        &LLADA_MOE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(&[EXPERT_LENGTH])?);
        let id = config.u32(&["mask_token_id"])?.unwrap_or(DEFAULT_MASK_TOKEN);
        keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, id);
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.set_unprefixed(key::DIFFUSION_SHIFT_LOGITS, false);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let length = || config.require_u32(&[EXPERT_LENGTH], "the FFN size of an expert");
        moe::mapping(config, name, length)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_mask_token(model, exported.patterns(moe::one_by_one())))
    }
}

/// Field with the FFN size of an expert.
const EXPERT_LENGTH: &str = "expert_intermediate_size";

/// ID of `<|mask|>` in all models of the class, if config.json does not state it.
const DEFAULT_MASK_TOKEN: u32 = 156895;
