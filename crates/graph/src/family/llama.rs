//! Llama, Mistral and Mixtral. InternLM2, ChatGLM, Ernie 4.5, Ling and XVERSE are the same with other keys and tensors,
//! the first DeepSeek with experts weighed otherwise.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, Heads, attention, decoder};
use crate::op::Mask;
use crate::rotation::{Factors, Pairs, Rotation, Stretch};

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

/// The weights of the experts stay what they are among all.
pub(super) fn deepseek(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, Pairs::Neighbours)?;
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// DeepSeek's OCR: heads rotate whole, whatever the key says. The window of those that have one spares
/// what is read first, which no mask here tells: all is looked at.
pub(super) fn deepseek_ocr(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let rotation = Rotation {
        pairs: Pairs::Halves,
        start: 0,
        count: Heads::of(builder, 0)?.key_len,
        base: builder.hyper.f32("rope.freq_base")?,
        stretch: Stretch::None,
        magnitude: 1.0,
        factors: Factors::None,
        block: 1,
        inverse: false,
    };
    let mut family = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.mask = Mask::Causal;
            attention(builder, x, &attend)
        },
        window_rotation: Some(rotation.clone()),
        rotation: Some(rotation),
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    family.routing.normalize = false;
    decoder(builder, &family)
}
