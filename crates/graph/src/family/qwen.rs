//! Qwen2 and Qwen3, dense and with experts, and many that are the same with other keys and tensors. Those that know
//! images too count positions in several dimensions, which are the same for text.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::op::Gating;
use crate::rotation::Pairs;

pub(super) fn qwen(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Halves)?;
    decoder(builder, &family)
}

/// The weights of the experts stay what they are among all.
pub(super) fn qwen2moe(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, Pairs::Halves)?;
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// The norm before the feed-forward network has the name of one after attention.
pub(super) fn norm_after_attention(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { network_norm: "post_attention_norm", ..Decoder::gated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}

/// Experts by the sigmoid of each.
pub(super) fn sigmoid_experts(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, Pairs::Halves)?;
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}
