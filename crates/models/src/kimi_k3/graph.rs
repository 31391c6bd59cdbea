//! Computation graph of Kimi K3: KDA and MLA layers with attention residuals, and MoE in a latent
//! space.

use gguf::Finding;
use gguf_graph::{GluFunction, Softmax, Sum, ValueId};

use crate::blocks::{
    DecayBound, Decoder, add_shared_expert, attend, concatenated, feed_forward, finish, layers,
    scored_experts, weighted_sum,
};
use crate::graph::{Builder, Norm};
use crate::kimi_linear::graph::{kda_mla_decoder, mixer};
use crate::schema::key;

/// Builds the layers. Every `attn_res_block_size` layers the residual stream is stored and a new
/// one begins with the output of attention.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = kda_mla_decoder(builder)?;
    (decoder.rope, decoder.window_rope) = (None, None);
    let beta = builder.hparams.f32(key::ACTIVATION_SITU_BETA)?;
    let linear =
        builder.f32_or_default(key::ACTIVATION_SITU_LINEAR_BETA)?.filter(|beta| *beta > 0.0);
    let situ = GluFunction::Situ { beta, linear };
    decoder.routing.function = situ;
    decoder.routing.normalize = false;
    let bound = builder.f32_or_default(key::KDA_GATE_LOWER_BOUND)?;
    let bound = bound.map(|least| DecayBound { least, sign: -1.0 });
    let block_size = builder.hparams.u64(key::ATTN_RES_BLOCK_SIZE)?;
    let mut stored = Vec::new();
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let input = attention_residual(builder, x, &stored, "attn_res_score", decoder.norm)?;
        let normed = builder.norm(input, "attn_norm", decoder.norm);
        let attend = attend(builder, layer, &decoder)?;
        let mixed = mixer(builder, normed, layer, attend, bound)?;
        x = if layer.checked_rem(block_size) == Some(0) {
            stored.push(x);
            mixed
        } else {
            builder.add(x, mixed)
        };
        let input = attention_residual(builder, x, &stored, "ffn_res_score", decoder.norm)?;
        let normed = builder.norm(input, "ffn_norm", decoder.norm);
        let fed = latent_moe(builder, normed, layer, &decoder)?;
        x = builder.add(x, fed);
    }
    builder.set_layer("", None);
    let x = attention_residual(builder, x, &stored, "output_res_score", decoder.norm)?;
    finish(builder, x, &decoder)
}

/// Adds the weighted sum of the stored streams and `x`. The weights are a softmax over one score
/// per stream: the dot product of the RMS-normalized stream and a vector.
fn attention_residual(
    builder: &mut Builder<'_>,
    x: ValueId,
    stored: &[ValueId],
    name: &str,
    norm: Norm,
) -> Result<ValueId, Finding> {
    let Some((first, others)) = stored.split_first() else { return Ok(x) };
    let others = [others, &[x]].concat();
    builder.weight(&format!("{name}.weight"))?;
    let mut score = |x| {
        let normed = builder.norm(x, name, norm);
        builder.op(Sum { x: normed, groups: 1 })
    };
    let first_score = score(*first);
    let scores: Vec<_> = others.iter().map(|x| score(*x)).collect();
    let scores = concatenated(builder, first_score, &scores);
    let weights = builder.op(Softmax { x: scores, groups: 1 });
    Ok(weighted_sum(builder, *first, &others, weights))
}

/// Adds the dense FFN, or MoE whose routed experts work in a latent space; the shared expert does
/// not.
fn latent_moe(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let function = decoder.routing.function;
    if !builder.has("ffn_gate_inp.weight") {
        return feed_forward(builder, x, function, "");
    }
    let scores = builder.matmul(x, "ffn_gate_inp")?;
    let is_latent = builder.has("ffn_routed_down.weight");
    let input = if is_latent { builder.matmul(x, "ffn_routed_down")? } else { x };
    let mut routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    if builder.has_norm("ffn_routed_norm") {
        routed = builder.norm(routed, "ffn_routed_norm", decoder.norm);
    }
    if builder.has("ffn_routed_up.weight") {
        routed = builder.matmul(routed, "ffn_routed_up")?;
    }
    add_shared_expert(builder, x, routed, function)
}
