//! GLM 4.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// A part of each head rotates, neighbours together. Models that know images too count positions in
/// several dimensions, which are the same for text, and their queries and keys are laid out for
/// halves.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let sections =
        builder.hyper.stated(key::ROPE_DIMENSION_SECTIONS).and_then(|all| all.as_array());
    let sections = sections.into_iter().flat_map(|all| all.iter()).take(2);
    let sees_images =
        sections.filter(|section| section.to_i64().is_some_and(|len| len > 0)).count() == 2;
    let pairs = if sees_images { RopeLayout::Neox } else { RopeLayout::Interleaved };
    let family = Decoder::gated(builder, pairs)?;
    decoder(builder, &family)
}
