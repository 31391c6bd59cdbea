//! Graph of `apertus`: Llama with an FFN without a gate whose activation is xIELU.

use gguf::Finding;
use gguf_graph::{Activation, ActivationFunction, RopeLayout, ValueId};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// The FFN is `down(xielu(up(x)))`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        ffn: |builder, x, layer, _| {
            let up = builder.matmul(x, "ffn_up")?;
            let activated = xielu(builder, up, layer)?;
            builder.matmul(activated, "ffn_down")
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}

/// xIELU (arXiv 2411.13010): `p x^2 + b x` above 0 and `n (exp(x) - 1 - x) + b x` below, with `p =
/// softplus(alpha_p)` and `n = b + softplus(alpha_n)`.
fn xielu(builder: &mut Builder<'_>, x: ValueId, layer: u64) -> Result<ValueId, Finding> {
    let parameter = |name: &str| builder.f32_without_prefix(&format!("xielu.{name}"), layer);
    let softplus = |x: f32| if x > 20.0 { x } else { x.exp().ln_1p() };
    let beta = parameter("beta")?;
    let positive = softplus(parameter("alpha_p")?);
    let negative = beta + softplus(parameter("alpha_n")?);
    let square = builder.op(Activation { x, function: ActivationFunction::ReluSquared });
    let square = builder.scale(square, positive);
    let elu = builder.op(Activation { x, function: ActivationFunction::Elu });
    let elu = builder.scale(elu, negative);
    let linear = builder.scale(x, beta - negative);
    let sum = builder.add(square, elu);
    Ok(builder.add(sum, linear))
}
