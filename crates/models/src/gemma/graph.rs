//! Gemma 1, 2 and 3, and the encoder made of the third.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder, 0)?;
    decoder(builder, &family)
}

/// What all have. Models of `special` layers scale attention by another number than the length of a
/// head, without a key that says it.
pub(crate) fn usual(builder: &mut Builder<'_>, special: u64) -> Result<Decoder, Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let attention_scale = if builder.hyper.u64(key::BLOCK_COUNT)? == special {
        let heads = builder.size(key::ATTENTION_HEAD_COUNT)?.max(1);
        Some(1.0 / ((width / heads) as f32).sqrt())
    } else {
        None
    };
    Ok(Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale: (width as f32).sqrt(),
        attention_scale,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    })
}
