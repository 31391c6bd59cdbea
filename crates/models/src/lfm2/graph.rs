//! LFM2: short convolutions in most layers, attention in some.

use gguf::Finding;
use gguf_graph::{CausalConv1d, Gating, Mul, RopeLayout, State, ValueId};

use crate::blocks::{Attend, Decoder, attention, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// The last norm has the name of one behind the embedding.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    if builder.has("dense_2.weight") {
        let what = "the model answers with frames of sound: such graphs are not built";
        return Err(Finding::error("key-value", what).key("lfm2.embedding_length_out"));
    }
    let mut family = Decoder {
        attention: mixer,
        output_norm: "token_embd_norm",
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}

/// What a layer has: attention, or `c * conv(b * x)`, all three made of its input by one matrix.
fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    if !builder.has("shortconv.conv.weight") {
        return attention(builder, x, &attend);
    }
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let rows = builder.size(key::SHORTCONV_L_CACHE)?.saturating_sub(1);
    let made = builder.product(x, "shortconv.in_proj")?;
    let [b, c, x] = builder.split(made, [width; 3]);
    let x = builder.op(Mul { a: b, b: x });
    let weight = builder.weight("shortconv.conv.weight")?;
    let state = builder.state(State::RowHistory { width, len: rows });
    let x = builder.op(CausalConv1d { x, weight, bias: None, dilation: 1, state });
    let x = builder.op(Mul { a: c, b: x });
    builder.product(x, "shortconv.out_proj")
}
