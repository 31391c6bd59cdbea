//! Computation graph of RWKV 4, and parts that later versions share.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Lerp, Mul, NormKind, State, TokenShift, ValueId, Wkv,
};

use crate::blocks::{Decoder, finish};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Builds RWKV 4, whose interpolation weights are those of the current token.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let interval = builder.hparams.u64(key::RESCALE_EVERY_N_LAYERS)?;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("blk.", Some(layer));
        // The residual stream is halved every `interval` layers, and so are the outputs of later
        // layers: only the epsilon of norms makes a difference.
        let halvings = layer.checked_div(interval).unwrap_or(0);
        let factor = 0.5f32.powi(i32::try_from(halvings).unwrap_or(i32::MAX));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix(builder, normed, width)?;
        let mixed = builder.scale(mixed, factor);
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, width, lerp_current)?;
        let mixed = builder.scale(mixed, factor);
        x = builder.add(x, mixed);
        if (layer + 1).checked_rem(interval) == Some(0) {
            x = builder.scale(x, 0.5);
        }
    }
    builder.set_layer("", None);
    finish(builder, x, &Decoder::without_rope(norm))
}

/// Returns the layer norm with the epsilon of one of two keys, or 1e-5.
pub(crate) fn norm(builder: &Builder<'_>) -> Result<Norm, Finding> {
    let stated = builder.f32_or_default(key::ATTENTION_LAYER_NORM_EPSILON)?;
    let stated = stated.or(builder.f32_or_default(key::ATTENTION_LAYER_NORM_RMS_EPSILON)?);
    Ok(Norm { kind: NormKind::Layer, epsilon: stated.unwrap_or(1e-5) })
}

/// Time mixing: the WKV recurrence of token-shifted keys and values, gated by the receptance.
fn time_mix(builder: &mut Builder<'_>, x: ValueId, width: u32) -> Result<ValueId, Finding> {
    let previous = token_shift(builder, x, width);
    let part = |builder: &mut Builder<'_>, lerp: &str, matrix: &str| {
        let mixed = lerp_current(builder, x, previous, lerp)?;
        builder.matmul(mixed, matrix)
    };
    let k = part(builder, "time_mix_lerp_k", "time_mix_key")?;
    let v = part(builder, "time_mix_lerp_v", "time_mix_value")?;
    let r = part(builder, "time_mix_lerp_r", "time_mix_receptance")?;
    let decay = builder.weight("time_mix_decay.weight")?;
    let first = builder.weight("time_mix_first.weight")?;
    let state = builder.state(State::Recurrent { len: width.saturating_mul(3) });
    let output = builder.op(Wkv::V4 { k, v, decay, bonus: first, state });
    let r = builder.op(Activation { x: r, function: ActivationFunction::Sigmoid });
    let gated = builder.op(Mul { a: output, b: r });
    builder.matmul(gated, "time_mix_output")
}

/// Interpolates the current and the previous token by a weight of this name.
type Interpolate = fn(&mut Builder<'_>, ValueId, ValueId, &str) -> Result<ValueId, Finding>;

/// Returns `weight * x + (1 - weight) * previous`.
pub(crate) fn lerp_current(
    builder: &mut Builder<'_>,
    x: ValueId,
    previous: ValueId,
    name: &str,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(&format!("{name}.weight"))?;
    Ok(builder.op(Lerp { a: x, b: previous, weight }))
}

/// Channel mixing: an FFN with squared ReLU of the token-shifted input, gated by the receptance in versions that have
/// one.
pub(crate) fn channel_mix(
    builder: &mut Builder<'_>,
    x: ValueId,
    width: u32,
    lerp: Interpolate,
) -> Result<ValueId, Finding> {
    let previous = token_shift(builder, x, width);
    let mixed = lerp(builder, x, previous, "channel_mix_lerp_k")?;
    let key = builder.matmul(mixed, "channel_mix_key")?;
    let key = builder.op(Activation { x: key, function: ActivationFunction::ReluSquared });
    let value = builder.matmul(key, "channel_mix_value")?;
    if !builder.has("channel_mix_receptance.weight") {
        return Ok(value);
    }
    let mixed = lerp(builder, x, previous, "channel_mix_lerp_r")?;
    let gate = builder.matmul(mixed, "channel_mix_receptance")?;
    let gate = builder.op(Activation { x: gate, function: ActivationFunction::Sigmoid });
    Ok(builder.op(Mul { a: value, b: gate }))
}

/// Returns the previous token of each token; the state holds the last one.
pub(crate) fn token_shift(builder: &mut Builder<'_>, x: ValueId, width: u32) -> ValueId {
    let state = builder.state(State::RowHistory { width, len: 1 });
    builder.op(TokenShift { x, state })
}
