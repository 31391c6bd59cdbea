//! Llama, Mistral and Mixtral. InternLM2, ChatGLM, Ernie 4.5, Ling and XVERSE are the same with other keys and tensors,
//! the first DeepSeek with experts weighed otherwise.

use gguf::Finding;
use gguf_graph::{Mask, RopeLayout};

use crate::blocks::{Decoder, attention, decoder};
use crate::graph::Builder;

/// Every token sees all, and no later run sees those of this one: the text is turned into a vector, or
/// its masked tokens are guessed (LLaDA).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, mut attend| {
            (attend.mask, attend.cached) = (Mask::Full, false);
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
