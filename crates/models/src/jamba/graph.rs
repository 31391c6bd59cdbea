//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1, Nemotron-H.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks::is_state_space;
use crate::blocks::{Decoder, StateSpace, attention, decoder};
use crate::graph::{Builder, Norm};

/// Nothing rotates: states know the order.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => StateSpace::of(builder)?.first(builder, x, Some(attend.norm)),
            false => attention(builder, x, &attend),
        },
        function: ActivationFunction::Silu,
        ..Decoder::plain(Norm::rms(builder)?)
    };
    family.routing.normalize = false;
    decoder(builder, &family)
}
