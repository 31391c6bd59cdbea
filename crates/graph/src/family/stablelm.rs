//! StableLM.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::op::Function;
use crate::rotation::Pairs;

/// Models without a norm before feed-forward have it beside attention. The key for it does not count:
/// the first files state it of models that have one after the other.
pub(super) fn stablelm(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = !builder.has("blk.0.ffn_norm.weight");
    let family =
        Decoder { function: Function::Silu, parallel, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}
