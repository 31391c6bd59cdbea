//! Granite, dense and with experts, and MiniCPM: as llama, with scales.

use gguf::Finding;

use crate::blocks::{Decoder, attention, decoder};
use crate::granite::graph::usual;
use crate::graph::Builder;

/// With windows. A key says which layers rotate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, layer, mut attend| {
            let key = "attention.rope_pattern";
            if builder.hyper.stated(key).is_some() && !builder.flag_in(key, layer)? {
                attend.rotation = None;
            }
            attention(builder, x, &attend)
        },
        ..usual(builder)?
    };
    decoder(builder, &family)
}
