//! Experts from the tensors of a layer.

use gguf::Finding;

use crate::build::Builder;
use crate::op::{Experts, GateFunction, Gating, Op};
use crate::raw::ValueId;

/// How an architecture chooses experts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    pub gating: Gating,
    pub normalize: bool,
    pub scale: f32,
    pub weigh_input: bool,
    pub groups: u32,
    pub groups_used: u32,
    pub function: GateFunction,
}

/// The experts of a layer, without those that all tokens share.
pub(crate) fn experts(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    routing: Routing,
) -> Result<ValueId, Finding> {
    let used = builder.size_in("expert_used_count", layer)?;
    let scores = builder.product(x, "ffn_gate_inp")?;
    let Routing { gating, normalize, scale, weigh_input, groups, groups_used, function } = routing;
    let experts = Experts {
        x,
        scores,
        used,
        gating,
        selection_bias: builder.find("exp_probs_b.bias"),
        groups,
        groups_used,
        normalize,
        scale,
        weigh_input,
        gate: builder.find("ffn_gate_exps.weight"),
        up: builder.weight("ffn_up_exps.weight")?,
        down: builder.weight("ffn_down_exps.weight")?,
        gate_bias: builder.find("ffn_gate_exps.bias"),
        up_bias: builder.find("ffn_up_exps.bias"),
        down_bias: builder.find("ffn_down_exps.bias"),
        function,
    };
    Ok(builder.op(Op::Experts(Box::new(experts))))
}
