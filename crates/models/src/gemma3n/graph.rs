//! Gemma 3n: several streams of the residual, of which a layer computes one and guesses the others
//! (AltUp, arXiv 2301.13310); the last layers share keys and values, and layers are told more of
//! each token than its embedding.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, AddScalar, BatchedMatmul, GatedActivation, GluFunction, Mul,
    MulWeight, NormKind, RopeLayout, RopeParameters, Slice, Sum, ValueId,
};

use crate::blocks::{
    Decoder, Shared, attend, embedding, finish, inputs_of_layers, joined, layers, normed, share,
    shared_attention, with_input,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Added to mean squares and variances that nothing is added to, so that zeros stay zeros.
const TINY: f32 = 1e-30;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut family = Decoder {
        embedding_scale: width.sqrt(),
        attention_scale: Some(1.0),
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    let x = embedding(builder, &family)?;
    let inputs = inputs_of_layers(builder, x)?;
    let count = builder.size(key::ALTUP_NUM_INPUTS)?.max(1);
    let active = builder.size(key::ALTUP_ACTIVE_IDX)?.min(count - 1) as usize;
    let mut streams = vec![x];
    let others = vec![x; count as usize - 1];
    for made in products(builder, &others, "altup_proj.weight")? {
        streams.push(as_large(builder, made, x)?);
    }
    let mut shared = Shared::of(builder)?;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let predicted = predict(builder, &streams, active, &family)?;
        let made = self::layer(builder, predicted[active], layer, &family, &mut shared)?;
        streams = correct(builder, &predicted, made, active, &family)?;
        let first = match builder.find("altup_correct_scale.weight") {
            Some(weight) => builder.op(MulWeight { x: streams[active], weight }),
            None => streams[active],
        };
        let told = with_input(builder, first, inputs, layer)?;
        for stream in streams.iter_mut().skip(1) {
            *stream = builder.add(*stream, told);
        }
    }
    builder.at("", None);
    let mut sum = streams[0];
    for made in products(builder, &streams[1..], "altup_unembd_proj.weight")? {
        let made = as_large(builder, made, streams[0])?;
        sum = builder.add(sum, made);
    }
    let mean = builder.scale(sum, 1.0 / count as f32);
    finish(builder, mean, &family)
}

/// Each of these times its matrix.
fn products(
    builder: &mut Builder<'_>,
    streams: &[ValueId],
    name: &str,
) -> Result<Vec<ValueId>, Finding> {
    let Some((first, others)) = streams.split_first() else { return Ok(Vec::new()) };
    let weight = builder.weight(name)?;
    let x = joined(builder, *first, others);
    let made = builder.op(BatchedMatmul { x, weight });
    let len = builder.size(key::EMBEDDING_LENGTH)?;
    let starts = (0..streams.len() as u32).map(|stream| stream.saturating_mul(len));
    Ok(starts.map(|start| builder.op(Slice { x: made, groups: 1, start, len })).collect())
}

/// `x` with the root mean square of `like`, which has as many numbers.
fn as_large(builder: &mut Builder<'_>, x: ValueId, like: ValueId) -> Result<ValueId, Finding> {
    let norm = Norm { kind: NormKind::Rms, epsilon: TINY };
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let size = divisor(builder, like, norm, width);
    let x = builder.weightless_norm(x, norm, 1);
    Ok(builder.op(Mul { a: x, b: size }))
}

/// What a norm divides rows of so many numbers by: the mean product of what goes in and what comes
/// out.
fn divisor(builder: &mut Builder<'_>, x: ValueId, norm: Norm, width: u32) -> ValueId {
    let unit = builder.weightless_norm(x, norm, 1);
    let product = builder.op(Mul { a: x, b: unit });
    let sum = builder.op(Sum { x: product, groups: 1 });
    builder.scale(sum, 1.0 / width.max(1) as f32)
}

/// What a stream says of how the streams mix.
fn modalities(
    builder: &mut Builder<'_>,
    x: ValueId,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let x = normed(builder, x, "altup_router_norm", decoder);
    let x = builder.scale(x, 1.0 / width);
    let x = builder.product(x, "altup_router")?;
    Ok(builder.op(Activation { x, function: ActivationFunction::Tanh }))
}

/// Each stream, and shares of all.
fn predict(
    builder: &mut Builder<'_>,
    streams: &[ValueId],
    active: usize,
    decoder: &Decoder,
) -> Result<Vec<ValueId>, Finding> {
    let x = modalities(builder, streams[active], decoder)?;
    let shares = builder.product(x, "altup_predict_coef")?;
    let mut number = 0;
    let mut predicted = Vec::new();
    for stream in streams {
        let mut sum = *stream;
        for other in streams {
            let part = share(builder, *other, shares, number);
            sum = builder.add(sum, part);
            number += 1;
        }
        predicted.push(sum);
    }
    Ok(predicted)
}

/// Each stream, moved by what was wrong with the one that was computed.
fn correct(
    builder: &mut Builder<'_>,
    predicted: &[ValueId],
    made: ValueId,
    active: usize,
    decoder: &Decoder,
) -> Result<Vec<ValueId>, Finding> {
    let x = modalities(builder, made, decoder)?;
    let shares = builder.product(x, "altup_correct_coef")?;
    let shares = builder.op(AddScalar { x: shares, scalar: 1.0 });
    let less = builder.scale(predicted[active], -1.0);
    let wrong = builder.add(made, less);
    let moved = predicted.iter().zip(0..).map(|(stream, number)| {
        let part = share(builder, wrong, shares, number);
        builder.add(*stream, part)
    });
    Ok(moved.collect())
}

/// A layer of the stream that is computed: attention beside a detour of low rank (LAuReL, arXiv
/// 2411.07501), then the feed-forward network.
fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    shared: &mut Shared,
) -> Result<ValueId, Finding> {
    let input = normed(builder, x, "attn_norm", decoder);
    let detour = builder.product(input, "laurel_l")?;
    let detour = builder.product(detour, "laurel_r")?;
    let detour = normed(builder, detour, "laurel_post_norm", decoder);
    let detour = builder.add(input, detour);
    let attend = attend(builder, layer, decoder)?;
    let attended = shared_attention(builder, input, layer, &attend, shared)?;
    let attended = normed(builder, attended, "post_attention_norm", decoder);
    let attended = builder.add(x, attended);
    let both = builder.add(attended, detour);
    let both = builder.scale(both, std::f32::consts::FRAC_1_SQRT_2);
    let input = normed(builder, both, "ffn_norm", decoder);
    let fed = network(builder, input, layer)?;
    let fed = normed(builder, fed, "post_ffw_norm", decoder);
    Ok(builder.add(both, fed))
}

/// A feed-forward network, of whose gates in some layers only what is far above the mean counts.
fn network(builder: &mut Builder<'_>, x: ValueId, layer: u64) -> Result<ValueId, Finding> {
    let mut gate = builder.product(x, "ffn_gate")?;
    let deviations = builder.number_in(key::ACTIVATION_SPARSITY_SCALE, layer)?;
    // Minus infinity stands for all.
    if deviations.is_finite() {
        let norm = Norm { kind: NormKind::Layer, epsilon: TINY };
        let inner = u32::try_from(builder.extent("ffn_gate.weight", 1)).unwrap_or(1);
        let deviation = divisor(builder, gate, norm, inner);
        let unit = builder.weightless_norm(gate, norm, 1);
        let above = builder.op(AddScalar { x: unit, scalar: -deviations });
        let above = builder.op(Activation { x: above, function: ActivationFunction::Relu });
        gate = builder.op(Mul { a: above, b: deviation });
    }
    let up = builder.product(x, "ffn_up")?;
    let function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let made = builder.op(GatedActivation { gate, up, function });
    builder.product(made, "ffn_down")
}
