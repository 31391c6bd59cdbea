//! Computation graph of Granite with sliding-window attention.

use gguf::Finding;

use crate::blocks::{self, Decoder, attention};
use crate::granite::graph::granite_decoder;
use crate::graph::Builder;

/// Builds a Granite decoder with sliding-window layers; `attention.rope_pattern` tells which layers
/// use RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, layer, mut attend| {
            let key = "attention.rope_pattern";
            if builder.hparams.value(key).is_some() && !builder.bool_in_layer(key, layer)? {
                attend.rope = None;
            }
            attention(builder, x, &attend)
        },
        ..granite_decoder(builder)?
    };
    blocks::decoder(builder, &decoder)
}
