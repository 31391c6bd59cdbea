//! Conversion of Maincoder: Llama's tensor names and QK-norm; the rows of Q and K are not permuted.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, hparams};
use crate::schema::key;

pub(crate) struct Maincoder;

/// Description of [`Maincoder`].
pub(crate) static MAINCODER: Description = Description {
    classes: &["MaincoderForCausalLM"],
    architecture: "maincoder",
    model_type: "maincoder",
    pre_tokenizers: &["qwen2"],
    ..Description::DECODER
};

impl Converter for Maincoder {
    fn description(&self) -> &'static Description {
        &MAINCODER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::ROPE_DIMENSION_COUNT, hparams::stated_head_dim(config)?);
        Ok(())
    }
}
