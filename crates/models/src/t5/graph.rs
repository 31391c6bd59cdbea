//! T5: encoder and decoder of text, or the encoder alone.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, Mask, OutputKind, PositionBias, SelectOutputs, StateId, ValueId, WeightId,
};

use crate::blocks::{Attend, Heads, attention, cross_attention, feed_forward, store_cross};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Distance from which all are in the last bucket: that of all T5, for which files have no key.
const MAX_DISTANCE: u32 = 128;

/// Encoder and decoder.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let x = encoder_layers(builder, norm)?;
    let hidden = builder.norm(x, "enc.output_norm", norm);
    builder.output(OutputKind::Hidden, hidden);
    let layers = builder.hyper.u64(key::T5_DECODER_BLOCK_COUNT)?;
    let heads = Heads::of(builder, 0)?;
    let stored = store_cross(builder, hidden, layers, heads)?;
    builder.end_encoder();
    let mut x = builder.embedding()?;
    let shared = builder.find("dec.blk.0.attn_rel_b.weight");
    for (layer, state) in (0..layers).zip(stored) {
        builder.at("dec.blk.", Some(layer));
        x = self::layer(builder, x, norm, shared, Some(state))?;
    }
    builder.at("", None);
    let x = builder.op(SelectOutputs { x });
    let hidden = builder.norm(x, "dec.output_norm", norm);
    builder.output(OutputKind::Hidden, hidden);
    let logits = if builder.has("output.weight") {
        builder.product(hidden, "output")?
    } else {
        // What also embeds tokens is as large as that asks for.
        let width = builder.size(key::EMBEDDING_LENGTH)?;
        let scaled = builder.scale(hidden, 1.0 / (width as f32).sqrt());
        builder.product(scaled, "token_embd")?
    };
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// The encoder up to its last norm.
pub(crate) fn encoder_layers(builder: &mut Builder<'_>, norm: Norm) -> Result<ValueId, Finding> {
    let mut x = builder.embedding()?;
    let shared = builder.find("enc.blk.0.attn_rel_b.weight");
    for layer in 0..builder.hyper.u64(key::BLOCK_COUNT)? {
        builder.at("enc.blk.", Some(layer));
        x = self::layer(builder, x, norm, shared, None)?;
    }
    builder.at("", None);
    Ok(x)
}

/// A layer of the decoder, if the encoder stored something for it, else of the encoder. Where a layer
/// has no bias of positions of its own, it is the first one's.
fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    norm: Norm,
    shared: Option<WeightId>,
    stored: Option<StateId>,
) -> Result<ValueId, Finding> {
    let heads = Heads::of(builder, 0)?;
    let is_encoder = stored.is_none();
    let weight = builder.find("attn_rel_b.weight").or(shared);
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
    if let Some(state) = stored {
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
