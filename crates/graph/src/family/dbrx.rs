//! DBRX: the norm before the experts has the name of one behind attention.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn dbrx(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { network_norm: "attn_output_norm", ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}
