//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one
//! part.

use gguf::Finding;
use gguf_graph::{Activation, ActivationFunction, RopeLayout, ValueId};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// The activation of Apertus is xIELU (arXiv 2411.13010), with numbers of its own in each layer.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        network: |builder, x, layer, _| {
            let up = builder.product(x, "ffn_up")?;
            let made = xielu(builder, up, layer)?;
            builder.product(made, "ffn_down")
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}

/// `p x^2 + b x` above 0, `n (exp(x) - 1 - x) + b x` below.
fn xielu(builder: &mut Builder<'_>, x: ValueId, layer: u64) -> Result<ValueId, Finding> {
    let number = |name: &str| builder.bare_number_in(&format!("xielu.{name}"), layer);
    let softplus = |x: f32| if x > 20.0 { x } else { x.exp().ln_1p() };
    let beta = number("beta")?;
    let positive = softplus(number("alpha_p")?);
    let negative = beta + softplus(number("alpha_n")?);
    let square = builder.op(Activation { x, function: ActivationFunction::ReluSquared });
    let square = builder.scale(square, positive);
    let elu = builder.op(Activation { x, function: ActivationFunction::Elu });
    let elu = builder.scale(elu, negative);
    let linear = builder.scale(x, beta - negative);
    let sum = builder.add(square, elu);
    Ok(builder.add(sum, linear))
}
