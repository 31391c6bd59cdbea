//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1, Nemotron-H.

use gguf::Finding;

use super::granite;
use crate::build::{Builder, Norm};
use crate::layers::{
    Attend, Decoder, Heads, StateSpace, attend, attended, attention, attention_output,
    beside_shared, decoder, feed_forward, finish, layers, queries_keys_values, scored_experts,
};
use crate::op::{Function, Gating, Op};
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

/// Granite 4, and Bamba, of whose heads a part rotates.
pub(super) fn granite(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => StateSpace::of(builder)?.second(builder, x, attend.norm),
            false => partly_rotated(builder, x, attend),
        },
        ..granite::usual(builder)?
    };
    decoder(builder, &family)
}

/// Attention by queries and keys whose heads stand in the order in which neighbours rotate together. Where
/// only a part of a head rotates, these are no neighbours: heads get the order back that they had before. (There
/// llama.cpp rotates neighbours all the same.)
fn partly_rotated(
    builder: &mut Builder<'_>,
    x: ValueId,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, .. } = attend.heads;
    let [mut query, mut key, value] = queries_keys_values(builder, x, &attend)?;
    if let Some(rotation) = attend.rotation.as_mut().filter(|rotation| rotation.count < key_len) {
        rotation.pairs = Pairs::Halves;
        [query, key] = [(query, heads), (key, heads_kv)].map(|(x, heads)| {
            let groups = heads.saturating_mul(key_len / 2);
            let [a, b] = [0, 1].map(|start| builder.op(Op::Slice { x, groups, start, len: 1 }));
            builder.op(Op::Join { a, b, groups: heads, shared: false })
        });
    }
    let made = attended(builder, [query, key, value], &attend);
    attention_output(builder, x, made, &attend)
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
    let mut made = scored_experts(builder, read, scores, layer, family.routing)?;
    if is_narrow {
        made = builder.product(made, "ffn_latent_up")?;
    }
    beside_shared(builder, x, made, family.function)
}
