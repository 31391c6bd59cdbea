//! Computation graph of Nemotron-H, dense and MoE.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Gating, ValueId};

use crate::blocks::{
    Decoder, SsmSizes, add_shared_expert, attend, attention, feed_forward, finish, is_state_space,
    layers, scored_experts,
};
use crate::graph::{Builder, Norm};

/// Builds a decoder whose layers have one mixer each: an SSM, attention, an FFN or an MoE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let mut decoder =
        Decoder { function: ActivationFunction::ReluSquared, ..Decoder::without_rope(norm) };
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.function = decoder.function.into();
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let output = if builder.has("ffn_gate_inp.weight") {
            latent_moe(builder, normed, layer, &decoder)?
        } else if builder.has("ffn_up.weight") {
            feed_forward(builder, normed, decoder.function, "")?
        } else if is_state_space(builder) {
            SsmSizes::of(builder)?.mamba2(builder, normed, norm)?
        } else {
            let attend = attend(builder, layer, &decoder)?;
            attention(builder, normed, &attend)?
        };
        x = builder.add(x, output);
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// MoE whose routed experts may read a projection to a latent, with a shared expert of full width.
fn latent_moe(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.matmul(x, "ffn_gate_inp")?;
    let has_latent = builder.has("ffn_latent_down.weight");
    let input = if has_latent { builder.matmul(x, "ffn_latent_down")? } else { x };
    let mut routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    if has_latent {
        routed = builder.matmul(routed, "ffn_latent_up")?;
    }
    add_shared_expert(builder, x, routed, decoder.function)
}
