//! Computation graph of PLaMo 2: SSMs in most layers, attention in the others, sandwich norms.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GatedActivation, GluFunction, RopeLayout, Slice, ValueId};

use crate::blocks::{self, Attend, Decoder, SsmSizes, attention, short_convolution};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, attend| match builder.has("ssm_in.weight") {
            true => ssm(builder, x, &attend),
            false => attention(builder, x, &attend),
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}

/// SSM with heads as in Mamba 2, whose time step, B and C are projections of the convolved input as in Mamba 1.
fn ssm(builder: &mut Builder<'_>, x: ValueId, attend: &Attend) -> Result<ValueId, Finding> {
    let space = SsmSizes::of(builder)?;
    let SsmSizes { inner, numbers, rank: heads } = space;
    let len = inner.checked_div(heads).unwrap_or(0);
    let gate_and_x = builder.matmul(x, "ssm_in")?;
    let gate = builder.op(Slice { x: gate_and_x, groups: heads, start: 0, len });
    let x = builder.op(Slice { x: gate_and_x, groups: heads, start: len, len });
    let x = short_convolution(builder, x, "ssm_conv1d", inner)?;
    let dt_b_c = builder.matmul(x, "ssm_x")?;
    let rank = u32::try_from(builder.extent("ssm_dt.weight", 0)).unwrap_or(0);
    let mut parts = builder.split(dt_b_c, [numbers, numbers, rank]);
    for (part, name) in parts.iter_mut().zip(["ssm_b_norm", "ssm_c_norm", "ssm_dt_norm"]) {
        *part = builder.norm(*part, name, attend.norm);
    }
    let [b, c, dt] = parts;
    let dt = builder.matmul(dt, "ssm_dt")?;
    let up = space.scan(builder, x, dt, [b, c], 1)?;
    let function = GluFunction::Plain(ActivationFunction::Silu);
    let y = builder.op(GatedActivation { gate, up, function });
    builder.matmul(y, "ssm_out")
}
