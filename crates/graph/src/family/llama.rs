//! Llama, Mistral and Mixtral. InternLM2 and ChatGLM are the same with other keys and tensors.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn llama(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Neighbours)?;
    decoder(builder, &family)
}
