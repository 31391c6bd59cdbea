//! Computation graph of MiniMax-Text-01 and MiniMax-M1: lightning attention in seven of eight
//! layers.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Decay, GatedActivation, GluFunction, LinearAttention,
    RopeLayout, Slice, State, ValueId,
};

use crate::blocks::{Decoder, attend, attention, ffn, finish, layers};
use crate::graph::Builder;
use crate::schema::key;

/// Builds the layers. The residual stream continues from the normalized input: `scale * norm(x) +
/// f(norm(x))`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    let scale = builder.scale_or_one(key::RESIDUAL_SCALE)?;
    let mut x = builder.embedding()?;
    let count = layers(builder)?;
    for layer in 0..count {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", decoder.norm);
        let attend = attend(builder, layer, &decoder)?;
        let mixed = if builder.has("attn_norm_2.weight") {
            // The decay is weaker in later layers.
            let depth = layer as f32 / (count.max(2) - 1) as f32;
            lightning_attention(builder, normed, 1.0 - depth + 1e-5, &decoder, attend.heads.heads)?
        } else {
            attention(builder, normed, &attend)?
        };
        x = scaled_residual(builder, normed, scale, mixed);
        let normed = builder.norm(x, "ffn_norm", decoder.norm);
        let fed = ffn(builder, normed, layer, &decoder)?;
        x = scaled_residual(builder, normed, scale, fed);
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// Adds `scale * x + y`.
fn scaled_residual(builder: &mut Builder<'_>, x: ValueId, scale: f32, y: ValueId) -> ValueId {
    let x = builder.scale(x, scale);
    builder.add(x, y)
}

/// Adds lightning attention: linear attention whose decay per head is `factor` times its ALiBi
/// slope.
fn lightning_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    factor: f32,
    decoder: &Decoder,
    heads: u32,
) -> Result<ValueId, Finding> {
    let qkv = builder.matmul(x, "attn_qkv")?;
    let qkv = builder.op(Activation { x: qkv, function: ActivationFunction::Silu });
    let len = builder.size(key::ATTENTION_KEY_LENGTH)?;
    let mut start = 0u32;
    let [query, key, value] = [(); 3].map(|()| {
        let part = builder.op(Slice { x: qkv, groups: heads, start, len });
        start = start.saturating_add(len);
        part
    });
    let state =
        builder.state(State::Recurrent { len: heads.saturating_mul(len).saturating_mul(len) });
    let decay = Decay::AlibiSlopes { max_bias: 8.0, factor };
    let attention = LinearAttention { query, key, value, heads, decay, beta: None, state };
    let attended = builder.op(attention);
    let up = builder.norm(attended, "attn_norm_2", decoder.norm);
    let gate = builder.matmul(x, "attn_gate")?;
    let function = GluFunction::Plain(ActivationFunction::Sigmoid);
    let gated = builder.op(GatedActivation { gate, up, function });
    builder.matmul(gated, "attn_output")
}
