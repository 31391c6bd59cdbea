//! DBRX: the norm before the experts has the name of one behind attention.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        network_norm: "attn_output_norm",
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
