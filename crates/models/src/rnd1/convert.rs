//! Conversion of RND1: as Qwen3 with MoE layers, with bidirectional attention and a mask token.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, moe};
use crate::dream::convert::{export_mask_token, mask_token_key};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

pub(crate) struct Rnd1;

/// Description of [`Rnd1`].
pub(crate) static RND1: Description = Description {
    classes: &["RND1"],
    architecture: "rnd1",
    model_type: "rnd1",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Rnd1 {
    fn description(&self) -> &'static Description {
        &RND1
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set(key::ATTENTION_CAUSAL, false);
        mask_token_key(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::mapping(config, name, || moe::width(config))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_mask_token(model, exported.patterns(moe::one_by_one())))
    }
}
