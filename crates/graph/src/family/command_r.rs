//! Command R and Command R7B: attention and feed-forward share one norm.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::op::Function;
use crate::rotation::Pairs;

pub(super) fn command_r(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

/// Of four layers the last has no window and does not rotate.
pub(super) fn cohere2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { window_period: 4, rotation: None, ..usual(builder)? };
    decoder(builder, &family)
}

fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    Ok(Decoder {
        function: Function::Silu,
        parallel: true,
        logit_scale: builder.factor("logit_scale")?,
        ..Decoder::rotated(builder, Pairs::Neighbours)?
    })
}
