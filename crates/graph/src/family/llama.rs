//! Llama, Mistral and Mixtral. InternLM2, ChatGLM, Ernie 4.5, Ling and XVERSE are the same with other keys and tensors,
//! the first DeepSeek with experts weighed otherwise.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, attention, decoder};
use crate::op::Mask;
use crate::rotation::Pairs;

pub(super) fn llama(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Neighbours)?;
    decoder(builder, &family)
}

/// Every token sees all, and no later run sees those of this one: the text is turned into a vector, or
/// its masked tokens are guessed (LLaDA).
pub(super) fn embed(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, mut attend| {
            (attend.mask, attend.cached) = (Mask::All, false);
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}

/// The weights of the experts stay what they are among all. DeepSeek's OCR is the same.
pub(super) fn deepseek(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, Pairs::Neighbours)?;
    family.routing.normalize = false;
    decoder(builder, &family)
}
