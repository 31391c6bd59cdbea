//! Graph of `gemma4`: head dimensions per layer type, a shared KV cache, per-layer input
//! embeddings, and an optional MoE beside the dense FFN.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, MulWeight, RopeLayout, RopeParameters, ValueId};

use crate::blocks::{
    Decoder, Shared, add_per_layer_input, attend, embedding, feed_forward, finish, layers, normed,
    per_layer_inputs, scored_experts, shared_attention,
};
use crate::graph::Builder;
use crate::schema::key;

/// RoPE scaling applies to layers with full attention only.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut decoder = Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale: width.sqrt(),
        attention_scale: Some(1.0),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    decoder.routing.function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let mut x = embedding(builder, &decoder)?;
    let inputs = match builder.has("per_layer_token_embd.weight") {
        true => Some(per_layer_inputs(builder, x)?),
        false => None,
    };
    let mut shared = Shared::of(builder)?;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        x = attention_residual(builder, x, layer, &decoder, &mut shared)?;
        let ffn_output = ffn(builder, x, layer, &decoder)?;
        let ffn_output = normed(builder, ffn_output, "post_ffw_norm", &decoder);
        x = builder.add(x, ffn_output);
        if let Some(inputs) = inputs {
            let layer_input = add_per_layer_input(builder, x, inputs, layer)?;
            x = builder.add(x, layer_input);
        }
        if let Some(weight) = builder.find("layer_output_scale.weight") {
            x = builder.op(MulWeight { x, weight });
        }
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// `x + norm(attention(norm(x)))`.
fn attention_residual(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    shared: &mut Shared,
) -> Result<ValueId, Finding> {
    let input = normed(builder, x, "attn_norm", decoder);
    let attend = attend(builder, layer, decoder)?;
    let attended = shared_attention(builder, input, layer, &attend, shared)?;
    let attended = normed(builder, attended, "post_attention_norm", decoder);
    Ok(builder.add(x, attended))
}

/// Dense FFN, plus a MoE in layers that have one. The router reads `x`, RMS-normalized without
/// weights, divided by `sqrt(n_embd)` and multiplied by `ffn_gate_inp.scale`.
fn ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let input = normed(builder, x, "ffn_norm", decoder);
    let dense = feed_forward(builder, input, decoder.function, "")?;
    if !builder.has("ffn_gate_inp.weight") {
        return Ok(dense);
    }
    let dense = normed(builder, dense, "post_ffw_norm_1", decoder);
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let scores = builder.norm_without_weight(x, decoder.norm, 1);
    let scores = builder.scale(scores, 1.0 / width.sqrt());
    let weight = builder.weight("ffn_gate_inp.scale")?;
    let scores = builder.op(MulWeight { x: scores, weight });
    let scores = builder.matmul(scores, "ffn_gate_inp")?;
    let input = normed(builder, x, "pre_ffw_norm_2", decoder);
    let routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    let routed = normed(builder, routed, "post_ffw_norm_2", decoder);
    Ok(builder.add(dense, routed))
}
