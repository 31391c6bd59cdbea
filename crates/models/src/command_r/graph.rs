//! Command R, Command R7B and North Mini: attention and feed-forward share one norm.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

pub(crate) fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    Ok(Decoder {
        function: ActivationFunction::Silu,
        parallel: true,
        logit_scale: builder.factor(key::LOGIT_SCALE)?,
        ..Decoder::rotated(builder, RopeLayout::Interleaved)?
    })
}
