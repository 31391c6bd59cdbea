//! Computation graph of LFM2: gated short convolutions in most layers, attention in the others.

use gguf::Finding;
use gguf_graph::{CausalConv1d, Gating, Mul, RopeLayout, State, ValueId};

use crate::blocks::{self, Attend, Decoder, attention};
use crate::graph::Builder;
use crate::schema::key;

/// Builds the decoder; its final norm is named `token_embd_norm`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    if builder.has("dense_2.weight") {
        let message = "the model is an audio tokenizer, which has no graph; expected a text model";
        return Err(Finding::error("key-value", message).key("lfm2.embedding_length_out"));
    }
    let mut decoder = Decoder {
        attention: mixer,
        output_norm: "token_embd_norm",
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}

/// Adds attention, or the gated short convolution `out(c * conv(b * x))` with `b`, `c` and `x` from
/// one projection.
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
    let history = builder.size(key::SHORTCONV_L_CACHE)?.saturating_sub(1);
    let projected = builder.matmul(x, "shortconv.in_proj")?;
    let [b, c, x] = builder.split(projected, [width; 3]);
    let x = builder.op(Mul { a: b, b: x });
    let weight = builder.weight("shortconv.conv.weight")?;
    let state = builder.state(State::RowHistory { width, len: history });
    let x = builder.op(CausalConv1d { x, weight, bias: None, dilation: 1, state });
    let x = builder.op(Mul { a: c, b: x });
    builder.matmul(x, "shortconv.out_proj")
}
