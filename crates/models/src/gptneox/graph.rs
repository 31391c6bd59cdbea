//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = builder.hyper.bool(key::USE_PARALLEL_RESIDUAL)?;
    let family = Decoder { parallel, ..Decoder::rotated(builder, RopeLayout::Neox)? };
    decoder(builder, &family)
}
