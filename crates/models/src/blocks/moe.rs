//! Mixture of experts (MoE) of a layer.

use gguf::Finding;
use gguf_graph::{Gating, GluFunction, Moe, SoftCap, ValueId};

use crate::graph::Builder;
use crate::schema::key;

/// Routing of an architecture, for what the metadata does not state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    pub gating: Gating,
    pub normalize: bool,
    pub weigh_input: bool,
    pub function: GluFunction,
    /// Soft cap of the router logits.
    pub soft_cap: Option<f32>,
}

/// Adds the routed experts of a layer, without the shared expert.
pub(crate) fn experts(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    routing: Routing,
) -> Result<ValueId, Finding> {
    let mut scores = builder.matmul(x, "ffn_gate_inp")?;
    if let Some(cap) = routing.soft_cap {
        scores = builder.op(SoftCap { x: scores, cap });
    }
    scored_experts(builder, x, scores, layer, routing)
}

/// Adds the routed experts, chosen by these router logits.
pub(crate) fn scored_experts(
    builder: &mut Builder<'_>,
    x: ValueId,
    scores: ValueId,
    layer: u64,
    routing: Routing,
) -> Result<ValueId, Finding> {
    let experts = experts_by(builder, x, scores, layer, routing)?;
    Ok(builder.op(experts))
}

/// Returns the MoE operation.
pub(crate) fn experts_by(
    builder: &mut Builder<'_>,
    x: ValueId,
    scores: ValueId,
    layer: u64,
    routing: Routing,
) -> Result<Moe, Finding> {
    let used = builder.size_in_layer(key::EXPERT_USED_COUNT, layer)?;
    let gating = gating(builder, routing.gating)?;
    let normalize = match builder.hparams.value(key::EXPERT_WEIGHTS_NORM) {
        Some(_) => builder.hparams.bool(key::EXPERT_WEIGHTS_NORM)?,
        None => routing.normalize,
    };
    let selection_bias = builder.find("exp_probs_b.bias");
    Ok(Moe {
        x,
        router_logits: scores,
        experts_per_token: used,
        expert_ids: None,
        gating,
        selection_bias: selection_bias.or_else(|| builder.find("exp_probs_b")),
        groups: builder.size(key::EXPERT_GROUP_COUNT)?.max(1),
        groups_per_token: builder.size(key::EXPERT_GROUP_USED_COUNT)?.max(1),
        // DeepSeek 2 compares groups by their best expert, DeepSeek 3 by their two best.
        group_top_k: if gating == Gating::Sigmoid { 2 } else { 1 },
        normalize_weights: normalize,
        weights_scale: builder.scale_or_one(key::EXPERT_WEIGHTS_SCALE)?,
        weight_before_ffn: routing.weigh_input,
        gate: builder.find("ffn_gate_exps.weight"),
        up: match builder.find("ffn_gate_up_exps.weight") {
            Some(both) => both,
            None => builder.weight("ffn_up_exps.weight")?,
        },
        down: builder.weight("ffn_down_exps.weight")?,
        gate_bias: builder.find("ffn_gate_exps.bias"),
        up_bias: builder.find("ffn_up_exps.bias"),
        down_bias: builder.find("ffn_down_exps.bias"),
        expert_scales: builder.find("ffn_down_exps.scale"),
        experts_per_network: 1,
        function: routing.function,
    })
}

/// Returns the router function: the model's, or the architecture's default.
fn gating(builder: &Builder<'_>, usual: Gating) -> Result<Gating, Finding> {
    const NAME: &str = "expert_gating_func";
    if builder.hparams.value(NAME).is_none() {
        return Ok(usual);
    }
    match builder.size(NAME)? {
        0 => Ok(usual),
        1 => Ok(Gating::Softmax),
        2 => Ok(Gating::Sigmoid),
        3 => Ok(Gating::SoftmaxAfterTopk),
        4 => Ok(Gating::SqrtSoftplus),
        other => Err(Finding::error("key-value", format!("{NAME} is {other}: no known function"))
            .help("1 is softmax, 2 sigmoid, 3 softmax over those chosen, 4 the root of softplus")),
    }
}
