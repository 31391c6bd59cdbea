//! Computation graph of T5: encoder and decoder.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, Mask, OutputKind, PositionBias, SelectOutputs, StateId, ValueId, WeightId,
};

use crate::blocks::{
    Attend, Heads, attention, cross_attention, feed_forward, store_cross_attention,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Distance from which all positions are in the last bucket: the value of all T5 models, for which GGUF has no key.
const MAX_DISTANCE: u32 = 128;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let x = encoder_layers(builder, norm)?;
    let hidden = builder.norm(x, "enc.output_norm", norm);
    builder.output(OutputKind::Hidden, hidden);
    let layers = builder.hparams.u64(key::T5_DECODER_BLOCK_COUNT)?;
    let heads = Heads::of(builder, 0)?;
    let cross_states = store_cross_attention(builder, hidden, layers, heads)?;
    builder.end_encoder();
    let mut x = builder.embedding()?;
    let first_bias = builder.find("dec.blk.0.attn_rel_b.weight");
    for (layer, state) in (0..layers).zip(cross_states) {
        builder.set_layer("dec.blk.", Some(layer));
        x = self::layer(builder, x, norm, first_bias, Some(state))?;
    }
    builder.set_layer("", None);
    let x = builder.op(SelectOutputs { x });
    let hidden = builder.norm(x, "dec.output_norm", norm);
    builder.output(OutputKind::Hidden, hidden);
    let logits = if builder.has("output.weight") {
        builder.matmul(hidden, "output")?
    } else {
        // Tied output matrices are not scaled for logits.
        let width = builder.size(key::EMBEDDING_LENGTH)?;
        let scaled = builder.scale(hidden, 1.0 / (width as f32).sqrt());
        builder.matmul(scaled, "token_embd")?
    };
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// Builds the encoder up to its output norm.
pub(crate) fn encoder_layers(builder: &mut Builder<'_>, norm: Norm) -> Result<ValueId, Finding> {
    let mut x = builder.embedding()?;
    let first_bias = builder.find("enc.blk.0.attn_rel_b.weight");
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("enc.blk.", Some(layer));
        x = self::layer(builder, x, norm, first_bias, None)?;
    }
    builder.set_layer("", None);
    Ok(x)
}

/// Builds a layer of the decoder if `cross_state` holds keys and values of the encoder, else of the encoder.
/// Layers without a relative position bias have that of the first layer.
fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    norm: Norm,
    first_bias: Option<WeightId>,
    cross_state: Option<StateId>,
) -> Result<ValueId, Finding> {
    let heads = Heads::of(builder, 0)?;
    let is_encoder = cross_state.is_none();
    let weight = builder.find("attn_rel_b.weight").or(first_bias);
    let bias = weight.map_or(PositionBias::None, |weight| PositionBias::RelativeBuckets {
        weight,
        max_distance: MAX_DISTANCE,
        bidirectional: is_encoder,
    });
    let attend = Attend {
        scale: 1.0,
        mask: if is_encoder { Mask::Full } else { Mask::Causal },
        bias,
        cached: !is_encoder,
        ..Attend::plain(heads, norm)
    };
    let normed = builder.norm(x, "attn_norm", norm);
    let attended = attention(builder, normed, &attend)?;
    let mut x = builder.add(x, attended);
    if let Some(state) = cross_state {
        let normed = builder.norm(x, "cross_attn_norm", norm);
        let attended = cross_attention(builder, normed, state, heads, 1.0)?;
        x = builder.add(x, attended);
    }
    let normed = builder.norm(x, "ffn_norm", norm);
    let is_gated = builder.has("ffn_gate.weight");
    let function = if is_gated { ActivationFunction::GeluTanh } else { ActivationFunction::Relu };
    let fed = feed_forward(builder, normed, function, "")?;
    Ok(builder.add(x, fed))
}
