//! Conversion of PLM, which has MLA as MiniCPM 3.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, defaults};
use crate::minicpm3;
use crate::minicpm3::convert::{FIELDS, NAMES, ROPE_DIM, VALUE_DIM, mla_keys};
use crate::schema::key;

pub(crate) struct Plm;

/// Description of [`Plm`].
pub(crate) static PLM: Description = Description {
    classes: &["PLMForCausalLM"],
    architecture: "plm",
    model_type: "plm",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for Plm {
    fn description(&self) -> &'static Description {
        &PLM
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        mla_keys(config, keys)?;
        keys.set_u32(key::ATTENTION_VALUE_LENGTH, config.u32(&[VALUE_DIM])?);
        keys.set_u32(key::ROPE_DIMENSION_COUNT, config.u32(&[ROPE_DIM])?);
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        minicpm3::convert::export_mla(model, exported)
    }
}
