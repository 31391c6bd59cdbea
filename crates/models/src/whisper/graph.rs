//! Computation graph of Whisper: an audio encoder, and a decoder with cross-attention.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Conv1d, Embedding, Features, Index, Mask, NormKind, OutputKind,
    SelectOutputs, StateId, ValueId,
};

use crate::blocks::{
    Attend, Heads, attention, cross_attention, feed_forward, store_cross_attention,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Norm of all Whisper models, for whose epsilon GGUF has no key.
const NORM: Norm = Norm { kind: NormKind::Layer, epsilon: 1e-5 };

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = self_attention(builder, "decoder", true)?;
    let layers = builder.hparams.u64(key::DECODER_BLOCK_COUNT)?;
    let cross_states = encoder(builder, layers, decoder.heads)?;
    let embedded = builder.embedding()?;
    let mut x = add_positions(builder, embedded, "dec.position_embd.weight", Index::Position)?;
    for (layer, state) in (0..layers).zip(cross_states) {
        builder.set_layer("dec.blk.", Some(layer));
        x = attention_residual(builder, x, &decoder)?;
        let normed = builder.norm(x, "cross_attn_norm", NORM);
        let cross = cross_attention(builder, normed, state, decoder.heads, decoder.scale)?;
        x = builder.add(x, cross);
        x = ffn_residual(builder, x)?;
    }
    builder.set_layer("", None);
    let x = builder.op(SelectOutputs { x });
    let hidden = builder.norm(x, "dec.output_norm", NORM);
    builder.output(OutputKind::Hidden, hidden);
    let logits = builder.matmul(hidden, "token_embd")?;
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// Builds the encoder and stores keys and values for the cross-attention of each decoder layer; returns their states.
fn encoder(
    builder: &mut Builder<'_>,
    decoder_layers: u64,
    heads: Heads,
) -> Result<Vec<StateId>, Finding> {
    let encoder = self_attention(builder, "encoder", false)?;
    let width = builder.size(key::ENCODER_MELS_COUNT)?;
    let features = builder.op(Features { width });
    let x = conv_gelu(builder, features, "enc.conv1", 1)?;
    let x = conv_gelu(builder, x, "enc.conv2", 2)?;
    let mut x = add_positions(builder, x, "enc.position_embd.weight", Index::Row)?;
    for layer in 0..builder.hparams.u64(key::ENCODER_BLOCK_COUNT)? {
        builder.set_layer("enc.blk.", Some(layer));
        x = attention_residual(builder, x, &encoder)?;
        x = ffn_residual(builder, x)?;
    }
    builder.set_layer("", None);
    let hidden = builder.norm(x, "enc.output_norm", NORM);
    builder.output(OutputKind::Hidden, hidden);
    let cross_states = store_cross_attention(builder, hidden, decoder_layers, heads)?;
    builder.end_encoder();
    Ok(cross_states)
}

/// Returns the self-attention parameters of the encoder or the decoder.
fn self_attention(builder: &Builder<'_>, part: &str, is_decoder: bool) -> Result<Attend, Finding> {
    let heads = builder.size(&format!("{part}.attention.head_count"))?;
    let len = builder.size(&format!("{part}.embedding_length"))?.checked_div(heads).unwrap_or(0);
    let heads = Heads { heads, heads_kv: heads, key_len: len, value_len: len };
    let mask = if is_decoder { Mask::Causal } else { Mask::Full };
    Ok(Attend { mask, cached: is_decoder, ..Attend::plain(heads, NORM) })
}

/// Residual stream after self-attention.
fn attention_residual(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let normed = builder.norm(x, "attn_norm", NORM);
    let attended = attention(builder, normed, attend)?;
    Ok(builder.add(x, attended))
}

/// Residual stream after the FFN.
fn ffn_residual(builder: &mut Builder<'_>, x: ValueId) -> Result<ValueId, Finding> {
    let normed = builder.norm(x, "ffn_norm", NORM);
    let fed = feed_forward(builder, normed, ActivationFunction::Gelu, "")?;
    Ok(builder.add(x, fed))
}

/// 1D convolution with GELU.
fn conv_gelu(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    stride: u32,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(&format!("{name}.weight"))?;
    let bias = builder.find(&format!("{name}.bias"));
    let x = builder.op(Conv1d { x, weight, bias, stride });
    Ok(builder.op(Activation { x, function: ActivationFunction::Gelu }))
}

/// Adds learned position embeddings.
fn add_positions(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    index: Index,
) -> Result<ValueId, Finding> {
    let table = builder.weight(name)?;
    let positions = builder.op(Embedding { table, index });
    Ok(builder.add(x, positions))
}
