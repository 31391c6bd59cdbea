//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1, Nemotron-H.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Gating, ValueId};

use crate::blocks::is_state_space;
use crate::blocks::{
    Decoder, StateSpace, attend, attention, beside_shared, feed_forward, finish, layers,
    scored_experts,
};
use crate::graph::{Builder, Norm};

/// Each layer is one of a state space, attention, and a feed-forward network.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let mut family = Decoder { function: ActivationFunction::ReluSquared, ..Decoder::plain(norm) };
    family.routing.gating = Gating::Sigmoid;
    family.routing.function = family.function.into();
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let made = if builder.has("ffn_gate_inp.weight") {
            latent_experts(builder, normed, layer, &family)?
        } else if builder.has("ffn_up.weight") {
            feed_forward(builder, normed, family.function, "")?
        } else if is_state_space(builder) {
            StateSpace::of(builder)?.second(builder, normed, norm)?
        } else {
            let attend = attend(builder, layer, &family)?;
            attention(builder, normed, &attend)?
        };
        x = builder.add(x, made);
    }
    builder.at("", None);
    finish(builder, x, &family)
}

/// Experts that may read less than the width, beside one that reads all of it.
fn latent_experts(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    family: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.product(x, "ffn_gate_inp")?;
    let is_narrow = builder.has("ffn_latent_down.weight");
    let read = if is_narrow { builder.product(x, "ffn_latent_down")? } else { x };
    let mut made = scored_experts(builder, read, scores, layer, family.routing)?;
    if is_narrow {
        made = builder.product(made, "ffn_latent_up")?;
    }
    beside_shared(builder, x, made, family.function)
}
