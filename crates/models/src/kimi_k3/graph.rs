//! Kimi Linear, Kimi K3 and Ling 3: delta attention in most layers, attention to what is compressed in the others.

use gguf::Finding;
use gguf_graph::{GluFunction, Softmax, Sum, ValueId};

use crate::blocks::{
    Bound, Decoder, attend, beside_shared, feed_forward, finish, joined, layers, scored_experts,
    sum_of_shares,
};
use crate::graph::{Builder, Norm};
use crate::kimi_linear::graph::{compressed, mixer};
use crate::schema::key;

/// Kimi K3: parts of layers read a mix of what earlier ones gave, and experts may read less than the width.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = compressed(builder)?;
    (family.rotation, family.window_rotation) = (None, None);
    let beta = builder.hyper.f32(key::ACTIVATION_SITU_BETA)?;
    let linear = builder.known(key::ACTIVATION_SITU_LINEAR_BETA)?.filter(|beta| *beta > 0.0);
    let situ = GluFunction::Situ { beta, linear };
    family.routing.function = situ;
    family.routing.normalize = false;
    let bound = builder.known(key::KDA_GATE_LOWER_BOUND)?;
    let bound = bound.map(|least| Bound { least, sign: -1.0 });
    let every = builder.hyper.u64(key::ATTN_RES_BLOCK_SIZE)?;
    let mut kept = Vec::new();
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let read = mixed(builder, x, &kept, "attn_res_score", family.norm)?;
        let normed = builder.norm(read, "attn_norm", family.norm);
        let attend = attend(builder, layer, &family)?;
        let made = mixer(builder, normed, layer, attend, bound)?;
        x = if layer.checked_rem(every) == Some(0) {
            kept.push(x);
            made
        } else {
            builder.add(x, made)
        };
        let read = mixed(builder, x, &kept, "ffn_res_score", family.norm)?;
        let normed = builder.norm(read, "ffn_norm", family.norm);
        let fed = latent_network(builder, normed, layer, &family)?;
        x = builder.add(x, fed);
    }
    builder.at("", None);
    let x = mixed(builder, x, &kept, "output_res_score", family.norm)?;
    finish(builder, x, &family)
}

/// The sum of what is kept and of `x`, each with its share: a softmax over scores of the normed rows.
fn mixed(
    builder: &mut Builder<'_>,
    x: ValueId,
    kept: &[ValueId],
    name: &str,
    norm: Norm,
) -> Result<ValueId, Finding> {
    let Some((first, others)) = kept.split_first() else { return Ok(x) };
    let others = [others, &[x]].concat();
    builder.weight(&format!("{name}.weight"))?;
    let mut score = |x| {
        let normed = builder.norm(x, name, norm);
        builder.op(Sum { x: normed, groups: 1 })
    };
    let first_score = score(*first);
    let scores: Vec<_> = others.iter().map(|x| score(*x)).collect();
    let scores = joined(builder, first_score, &scores);
    let shares = builder.op(Softmax { x: scores, groups: 1 });
    Ok(sum_of_shares(builder, *first, &others, shares))
}

/// Experts that may read less than the width, beside one that reads all of it.
fn latent_network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let function = decoder.routing.function;
    if !builder.has("ffn_gate_inp.weight") {
        return feed_forward(builder, x, function, "");
    }
    let scores = builder.product(x, "ffn_gate_inp")?;
    let is_narrow = builder.has("ffn_routed_down.weight");
    let read = if is_narrow { builder.product(x, "ffn_routed_down")? } else { x };
    let mut made = scored_experts(builder, read, scores, layer, decoder.routing)?;
    if builder.has_norm("ffn_routed_norm") {
        made = builder.norm(made, "ffn_routed_norm", decoder.norm);
    }
    if builder.has("ffn_routed_up.weight") {
        made = builder.product(made, "ffn_routed_up")?;
    }
    beside_shared(builder, x, made, function)
}
