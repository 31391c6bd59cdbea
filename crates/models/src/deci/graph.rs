//! Models that Nvidia made of Llama by taking parts away: layers may lack attention, or have a
//! matrix instead, and may lack a feed-forward network.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{Decoder, attend, decoder, network, normed};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { layer, ..Decoder::gated(builder, RopeLayout::Interleaved)? };
    decoder(builder, &family)
}

fn layer(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    if builder.size_in(key::ATTENTION_HEAD_COUNT, layer)? > 0 {
        let input = normed(builder, x, "attn_norm", decoder);
        let attended = if builder.size_in(key::ATTENTION_HEAD_COUNT_KV, layer)? > 0 {
            let attend = attend(builder, layer, decoder)?;
            (decoder.attention)(builder, input, layer, attend)?
        } else {
            builder.product(input, "attn_output")?
        };
        x = builder.add(x, attended);
    }
    if builder.size_in(key::FEED_FORWARD_LENGTH, layer)? > 0 {
        let input = normed(builder, x, decoder.network_norm, decoder);
        let fed = network(builder, input, layer, decoder)?;
        x = builder.add(x, fed);
    }
    Ok(x)
}
