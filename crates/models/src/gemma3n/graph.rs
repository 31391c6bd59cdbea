//! Graph of `gemma3n`: AltUp streams (arXiv 2301.13310), LAuReL (arXiv 2411.07501), a shared KV
//! cache, per-layer input embeddings and activation sparsity.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, AddScalar, BatchedMatmul, GatedActivation, GluFunction, Mul,
    MulWeight, NormKind, RopeLayout, RopeParameters, Slice, Sum, ValueId,
};

use crate::blocks::{
    Decoder, Shared, add_per_layer_input, attend, concatenated, embedding, finish, layers, normed,
    per_layer_inputs, share, shared_attention,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Epsilon of norms that have none in the model, so that rows of zeros stay zeros.
const TINY: f32 = 1e-30;

/// The streams are projections of the embedding with its RMS. Each layer predicts all streams,
/// computes the active one and corrects all of them; the output is the mean of the streams,
/// projected back.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut decoder = Decoder {
        embedding_scale: width.sqrt(),
        attention_scale: Some(1.0),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    let x = embedding(builder, &decoder)?;
    let inputs = per_layer_inputs(builder, x)?;
    let count = builder.size(key::ALTUP_NUM_INPUTS)?.max(1);
    let active = builder.size(key::ALTUP_ACTIVE_IDX)?.min(count - 1) as usize;
    let mut streams = vec![x];
    let others = vec![x; count as usize - 1];
    for output in stream_projections(builder, &others, "altup_proj.weight")? {
        streams.push(with_rms_of(builder, output, x)?);
    }
    let mut shared = Shared::of(builder)?;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let predicted = predict(builder, &streams, active, &decoder)?;
        let output = self::layer(builder, predicted[active], layer, &decoder, &mut shared)?;
        streams = correct(builder, &predicted, output, active, &decoder)?;
        let first = match builder.find("altup_correct_scale.weight") {
            Some(weight) => builder.op(MulWeight { x: streams[active], weight }),
            None => streams[active],
        };
        let layer_input = add_per_layer_input(builder, first, inputs, layer)?;
        for stream in streams.iter_mut().skip(1) {
            *stream = builder.add(*stream, layer_input);
        }
    }
    builder.set_layer("", None);
    let mut sum = streams[0];
    for output in stream_projections(builder, &streams[1..], "altup_unembd_proj.weight")? {
        let output = with_rms_of(builder, output, streams[0])?;
        sum = builder.add(sum, output);
    }
    let mean = builder.scale(sum, 1.0 / count as f32);
    finish(builder, mean, &decoder)
}

/// Multiplies each stream by its matrix.
fn stream_projections(
    builder: &mut Builder<'_>,
    streams: &[ValueId],
    name: &str,
) -> Result<Vec<ValueId>, Finding> {
    let Some((first, others)) = streams.split_first() else { return Ok(Vec::new()) };
    let weight = builder.weight(name)?;
    let x = concatenated(builder, *first, others);
    let output = builder.op(BatchedMatmul { x, weight });
    let len = builder.size(key::EMBEDDING_LENGTH)?;
    let starts = (0..streams.len() as u32).map(|stream| stream.saturating_mul(len));
    Ok(starts.map(|start| builder.op(Slice { x: output, groups: 1, start, len })).collect())
}

/// Returns `x` scaled to the RMS of `like`.
fn with_rms_of(builder: &mut Builder<'_>, x: ValueId, like: ValueId) -> Result<ValueId, Finding> {
    let norm = Norm { kind: NormKind::Rms, epsilon: TINY };
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let size = divisor(builder, like, norm, width);
    let x = builder.norm_without_weight(x, norm, 1);
    Ok(builder.op(Mul { a: x, b: size }))
}

/// Returns the divisor of a norm without weights, `sqrt(variance)` or RMS: the mean of `x norm(x)`
/// over a row.
fn divisor(builder: &mut Builder<'_>, x: ValueId, norm: Norm, width: u32) -> ValueId {
    let unit = builder.norm_without_weight(x, norm, 1);
    let product = builder.op(Mul { a: x, b: unit });
    let sum = builder.op(Sum { x: product, groups: 1 });
    builder.scale(sum, 1.0 / width.max(1) as f32)
}

/// Returns the modalities of the AltUp router, `tanh(router(norm(x) / n_embd))`.
fn modalities(
    builder: &mut Builder<'_>,
    x: ValueId,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let x = normed(builder, x, "altup_router_norm", decoder);
    let x = builder.scale(x, 1.0 / width);
    let x = builder.matmul(x, "altup_router")?;
    Ok(builder.op(Activation { x, function: ActivationFunction::Tanh }))
}

/// AltUp prediction: each stream plus a combination of all streams, with coefficients from the
/// active one.
fn predict(
    builder: &mut Builder<'_>,
    streams: &[ValueId],
    active: usize,
    decoder: &Decoder,
) -> Result<Vec<ValueId>, Finding> {
    let x = modalities(builder, streams[active], decoder)?;
    let coefficients = builder.matmul(x, "altup_predict_coef")?;
    let mut index = 0;
    let mut predicted = Vec::new();
    for stream in streams {
        let mut sum = *stream;
        for other in streams {
            let part = share(builder, *other, coefficients, index);
            sum = builder.add(sum, part);
            index += 1;
        }
        predicted.push(sum);
    }
    Ok(predicted)
}

/// AltUp correction: each stream plus a multiple of the prediction error of the active one.
fn correct(
    builder: &mut Builder<'_>,
    predicted: &[ValueId],
    output: ValueId,
    active: usize,
    decoder: &Decoder,
) -> Result<Vec<ValueId>, Finding> {
    let x = modalities(builder, output, decoder)?;
    let coefficients = builder.matmul(x, "altup_correct_coef")?;
    let coefficients = builder.op(AddScalar { x: coefficients, scalar: 1.0 });
    let negated = builder.scale(predicted[active], -1.0);
    let error = builder.add(output, negated);
    let corrected = predicted.iter().zip(0..).map(|(stream, index)| {
        let part = share(builder, error, coefficients, index);
        builder.add(*stream, part)
    });
    Ok(corrected.collect())
}

/// Computes the active stream: `((x + norm(attention)) + laurel) / sqrt(2)`, where `laurel` is the
/// normalized input plus its low-rank projection, then the FFN.
fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    shared: &mut Shared,
) -> Result<ValueId, Finding> {
    let input = normed(builder, x, "attn_norm", decoder);
    let laurel = builder.matmul(input, "laurel_l")?;
    let laurel = builder.matmul(laurel, "laurel_r")?;
    let laurel = normed(builder, laurel, "laurel_post_norm", decoder);
    let laurel = builder.add(input, laurel);
    let attend = attend(builder, layer, decoder)?;
    let attended = shared_attention(builder, input, layer, &attend, shared)?;
    let attended = normed(builder, attended, "post_attention_norm", decoder);
    let attended = builder.add(x, attended);
    let residual = builder.add(attended, laurel);
    let residual = builder.scale(residual, std::f32::consts::FRAC_1_SQRT_2);
    let input = normed(builder, residual, "ffn_norm", decoder);
    let ffn_output = ffn(builder, input, layer)?;
    let ffn_output = normed(builder, ffn_output, "post_ffw_norm", decoder);
    Ok(builder.add(residual, ffn_output))
}

/// GeGLU FFN. With activation sparsity the gate is `relu(gate - (mean + s deviation))`, where `s`
/// is the number of standard deviations of the layer.
fn ffn(builder: &mut Builder<'_>, x: ValueId, layer: u64) -> Result<ValueId, Finding> {
    let mut gate = builder.matmul(x, "ffn_gate")?;
    let threshold = builder.f32_in_layer(key::ACTIVATION_SPARSITY_SCALE, layer)?;
    // Minus infinity means no sparsity.
    if threshold.is_finite() {
        let norm = Norm { kind: NormKind::Layer, epsilon: TINY };
        let inner = u32::try_from(builder.extent("ffn_gate.weight", 1)).unwrap_or(1);
        let deviation = divisor(builder, gate, norm, inner);
        let unit = builder.norm_without_weight(gate, norm, 1);
        let above = builder.op(AddScalar { x: unit, scalar: -threshold });
        let above = builder.op(Activation { x: above, function: ActivationFunction::Relu });
        gate = builder.op(Mul { a: above, b: deviation });
    }
    let up = builder.matmul(x, "ffn_up")?;
    let function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let output = builder.op(GatedActivation { gate, up, function });
    builder.matmul(output, "ffn_down")
}
