//! Gemma 4: layers without a window have wider heads, the last layers share keys and values, layers
//! are told more of each token than its embedding, and some models have experts beside a dense
//! network.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, MulWeight, RopeLayout, RopeParameters, ValueId};

use crate::blocks::{
    Decoder, Shared, attend, embedding, feed_forward, finish, inputs_of_layers, layers, normed,
    scored_experts, shared_attention, with_input,
};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut family = Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale: width.sqrt(),
        attention_scale: Some(1.0),
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    family.routing.function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let mut x = embedding(builder, &family)?;
    let inputs = match builder.has("per_layer_token_embd.weight") {
        true => Some(inputs_of_layers(builder, x)?),
        false => None,
    };
    let mut shared = Shared::of(builder)?;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        x = attended(builder, x, layer, &family, &mut shared)?;
        let fed = network(builder, x, layer, &family)?;
        let fed = normed(builder, fed, "post_ffw_norm", &family);
        x = builder.add(x, fed);
        if let Some(inputs) = inputs {
            let made = with_input(builder, x, inputs, layer)?;
            x = builder.add(x, made);
        }
        if let Some(weight) = builder.find("layer_output_scale.weight") {
            x = builder.op(MulWeight { x, weight });
        }
    }
    builder.at("", None);
    finish(builder, x, &family)
}

/// What goes into a layer, with what its attention adds.
fn attended(
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

/// The dense network, and experts beside it, in layers that have some.
fn network(
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
    let scores = builder.weightless_norm(x, decoder.norm, 1);
    let scores = builder.scale(scores, 1.0 / width.sqrt());
    let weight = builder.weight("ffn_gate_inp.scale")?;
    let scores = builder.op(MulWeight { x: scores, weight });
    let scores = builder.product(scores, "ffn_gate_inp")?;
    let input = normed(builder, x, "pre_ffw_norm_2", decoder);
    let routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    let routed = normed(builder, routed, "post_ffw_norm_2", decoder);
    Ok(builder.add(dense, routed))
}
