//! Computation graph of HRM-Text: two stacks of layers that run in cycles.

use gguf::Finding;
use gguf_graph::{Bias, RopeLayout, ValueId};

use crate::blocks::{Decoder, embedding, finish, layer};
use crate::graph::Builder;
use crate::nanbeige::graph::MAX_LOOPS;
use crate::schema::key;

/// Builds the cycles: in each of `h_cycles`, `low = L(high + low)` runs `l_cycles` times, then
/// `high = H(high + low)`. The first run of stack L adds the initial state `hrm.z_l_init` in place
/// of `low`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let embedding_scale = builder.scale_or_one(key::EMBEDDING_SCALE)?;
    let decoder = Decoder {
        weightless_norms: true,
        embedding_scale,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    let layers_per_stack = builder.hparams.u64(key::HRM_LAYERS_PER_STACK)?;
    let [h_cycles, l_cycles] = ["hrm.h_cycles", "hrm.l_cycles"].map(|key| builder.hparams.u64(key));
    let h_cycles = h_cycles?.clamp(1, MAX_LOOPS);
    let l_cycles = l_cycles?.clamp(1, MAX_LOOPS);
    let mut high = embedding(builder, &decoder)?;
    let initial = builder.weight("hrm.z_l_init")?;
    let mut low = None;
    for _ in 0..h_cycles {
        for _ in 0..l_cycles {
            let input = match low {
                Some(low) => builder.add(high, low),
                None => builder.op(Bias { x: high, weight: initial }),
            };
            low = Some(stack(builder, input, 0..layers_per_stack, &decoder)?);
        }
        let input = low.map_or(high, |low| builder.add(high, low));
        high =
            stack(builder, input, layers_per_stack..layers_per_stack.saturating_mul(2), &decoder)?;
    }
    // The final norm is that of stack H.
    let decoder = Decoder { weightless_norms: false, ..decoder };
    finish(builder, high, &decoder)
}

/// Adds the layers of a stack and its norm.
fn stack(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    layers: std::ops::Range<u64>,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    for index in layers {
        builder.set_layer("blk.", Some(index));
        x = layer(builder, x, index, decoder)?;
    }
    builder.set_layer("", None);
    Ok(builder.norm_without_weight(x, decoder.norm, 1))
}
