//! SmolLM3: as llama, but of four layers the last does not rotate.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, attention, decoder};
use crate::rotation::Pairs;

pub(super) fn smollm3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, layer, mut attend| {
            if layer % 4 == 3 {
                attend.rotation = None;
            }
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}
