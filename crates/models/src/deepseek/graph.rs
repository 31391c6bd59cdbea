//! Llama, Mistral and Mixtral. InternLM2, ChatGLM, Ernie 4.5, Ling and XVERSE are the same with
//! other keys and tensors, the first DeepSeek with experts weighed otherwise.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// The weights of the experts stay what they are among all.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    family.routing.normalize = false;
    decoder(builder, &family)
}
