//! Maincoder: as llama without its order of rows, with norms of queries and keys.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, hparams};
use crate::schema::key;

pub(crate) struct Maincoder;

impl Converter for Maincoder {
    fn classes(&self) -> &'static [&'static str] {
        &["MaincoderForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "maincoder"
    }

    fn model_type(&self) -> &'static str {
        "maincoder"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::ROPE_DIMENSION_COUNT, hparams::stated_head_dim(config)?);
        Ok(())
    }
}
