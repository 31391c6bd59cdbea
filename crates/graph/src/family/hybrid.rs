//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1, Nemotron-H.

use gguf::Finding;

use super::granite;
use crate::build::{Builder, Norm};
use crate::layers::{
    Decoder, StateSpace, attend, attention, decoder, feed_forward, finish, layers, routed,
};
use crate::op::{Function, GateFunction, Gating};
use crate::raw::ValueId;
use crate::rotation::Pairs;

/// Nothing rotates: states know the order.
pub(super) fn jamba(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => StateSpace::of(builder)?.first(builder, x, Some(attend.norm)),
            false => attention(builder, x, &attend),
        },
        function: Function::Silu,
        ..Decoder::plain(Norm::mean_square(builder)?)
    };
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// As Granite, but positions rotate only where the model says so.
pub(super) fn granite(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => StateSpace::of(builder)?.second(builder, x, attend.norm),
            false => attention(builder, x, &attend),
        },
        ..granite::scaled(builder)?
    };
    if !builder.hyper.bool("rope.scaling.finetuned")? {
        (family.rotation, family.window_rotation) = (None, None);
    }
    decoder(builder, &family)
}

/// A layer has both, of the same input.
pub(super) fn falcon_h1(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let norm = attend.norm;
            let scanned = StateSpace::of(builder)?.second(builder, x, norm)?;
            Ok(builder.add(attended, scanned))
        },
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    decoder(builder, &family)
}

/// Each layer is one of a state space, attention, and a feed-forward network.
pub(super) fn nemotron_h(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::mean_square(builder)?;
    let mut family = Decoder { function: Function::ReluSquared, ..Decoder::plain(norm) };
    family.routing.gating = Gating::Sigmoid;
    family.routing.function = GateFunction::Plain(Function::ReluSquared);
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

fn is_state_space(builder: &Builder<'_>) -> bool {
    builder.has("ssm_in.weight")
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
    let mut made = routed(builder, read, scores, layer, family.routing)?;
    if is_narrow {
        made = builder.product(made, "ffn_latent_up")?;
    }
    let shared = feed_forward(builder, x, family.function, "_shexp")?;
    Ok(builder.add(made, shared))
}
