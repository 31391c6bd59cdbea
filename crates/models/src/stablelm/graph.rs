//! StableLM.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Models without a norm before feed-forward have it beside attention. The key for it does not count:
/// the first files state it of models that have one after the other.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = !builder.has("blk.0.ffn_norm.weight");
    let family = Decoder {
        function: ActivationFunction::Silu,
        parallel,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
