//! MiniMax Text 01 and M1: of eight layers all but the last attend linearly, with a decay that no token
//! changes. What a layer adds to is its normed input.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Decay, GatedActivation, GluFunction, LinearAttention,
    RopeLayout, Slice, State, ValueId,
};

use crate::blocks::{Decoder, attend, attention, finish, layers, network};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, RopeLayout::Neox)?;
    let scale = builder.factor(key::RESIDUAL_SCALE)?;
    let mut x = builder.embedding()?;
    let count = layers(builder)?;
    for layer in 0..count {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", family.norm);
        let attend = attend(builder, layer, &family)?;
        let mixed = if builder.has("attn_norm_2.weight") {
            // The later a layer, the longer it remembers.
            let share = layer as f32 / (count.max(2) - 1) as f32;
            lightning(builder, normed, 1.0 - share + 1e-5, &family, attend.heads.heads)?
        } else {
            attention(builder, normed, &attend)?
        };
        x = added(builder, normed, scale, mixed);
        let normed = builder.norm(x, "ffn_norm", family.norm);
        let fed = network(builder, normed, layer, &family)?;
        x = added(builder, normed, scale, fed);
    }
    builder.at("", None);
    finish(builder, x, &family)
}

fn added(builder: &mut Builder<'_>, x: ValueId, scale: f32, more: ValueId) -> ValueId {
    let x = builder.scale(x, scale);
    builder.add(x, more)
}

/// Linear attention whose decays are `factor` times the slopes of ALiBi.
fn lightning(
    builder: &mut Builder<'_>,
    x: ValueId,
    factor: f32,
    family: &Decoder,
    heads: u32,
) -> Result<ValueId, Finding> {
    let made = builder.product(x, "attn_qkv")?;
    let made = builder.op(Activation { x: made, function: ActivationFunction::Silu });
    let len = builder.size(key::ATTENTION_KEY_LENGTH)?;
    let mut start = 0u32;
    let [query, key, value] = [(); 3].map(|()| {
        let part = builder.op(Slice { x: made, groups: heads, start, len });
        start = start.saturating_add(len);
        part
    });
    let state =
        builder.state(State::Recurrent { len: heads.saturating_mul(len).saturating_mul(len) });
    let decay = Decay::AlibiSlopes { max_bias: 8.0, factor };
    let attention = LinearAttention { query, key, value, heads, decay, beta: None, state };
    let up = builder.op(attention);
    let up = builder.norm(up, "attn_norm_2", family.norm);
    let gate = builder.product(x, "attn_gate")?;
    let function = GluFunction::Plain(ActivationFunction::Sigmoid);
    let gated = builder.op(GatedActivation { gate, up, function });
    builder.product(gated, "attn_output")
}
