//! Computation graph of T5 encoders.

use gguf::Finding;
use gguf_graph::{OutputKind, SelectOutputs};

use crate::blocks::pooled;
use crate::graph::{Builder, Norm};
use crate::t5::graph::encoder_layers;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let x = encoder_layers(builder, norm)?;
    let x = builder.op(SelectOutputs { x });
    let hidden = builder.norm(x, "enc.output_norm", norm);
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)
}
