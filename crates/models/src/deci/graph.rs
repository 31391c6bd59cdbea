//! Graph of `deci`: Llama whose layers may lack attention or FFN, or have a linear projection
//! instead of attention.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{self, Decoder, attend, ffn, normed};
use crate::graph::Builder;
use crate::schema::key;

/// Builds Llama with the layer of DeciLM.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder { layer, ..Decoder::llama_like(builder, RopeLayout::Interleaved)? };
    blocks::decoder(builder, &decoder)
}

/// Head count 0: no attention; KV head count 0: `attn_output` applied to the normalized input; FFN
/// size 0: no FFN.
fn layer(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    if builder.size_in_layer(key::ATTENTION_HEAD_COUNT, layer)? > 0 {
        let input = normed(builder, x, "attn_norm", decoder);
        let attended = if builder.size_in_layer(key::ATTENTION_HEAD_COUNT_KV, layer)? > 0 {
            let attend = attend(builder, layer, decoder)?;
            (decoder.attention)(builder, input, layer, attend)?
        } else {
            builder.matmul(input, "attn_output")?
        };
        x = builder.add(x, attended);
    }
    if builder.size_in_layer(key::FEED_FORWARD_LENGTH, layer)? > 0 {
        let input = normed(builder, x, decoder.ffn_norm, decoder);
        let ffn_output = ffn(builder, input, layer, decoder)?;
        x = builder.add(x, ffn_output);
    }
    Ok(x)
}
