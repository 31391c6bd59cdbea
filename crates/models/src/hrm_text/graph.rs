//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one part.

use gguf::Finding;
use gguf_graph::{Bias, RopeLayout, ValueId};

use crate::blocks::{Decoder, embedding, finish, layer};
use crate::graph::Builder;
use crate::nanbeige::graph::MAX_LOOPS;
use crate::schema::key;

/// HRM: a fast and a slow stack of layers are run through in turn; the fast one reads what the slow one
/// said, the slow one what the fast one said at last. Norms have no weights, attention has gates.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let embedding_scale = builder.factor(key::EMBEDDING_SCALE)?;
    let family = Decoder {
        weightless_norms: true,
        embedding_scale,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    let per_stack = builder.hyper.u64(key::HRM_LAYERS_PER_STACK)?;
    let [slow, fast] = ["hrm.h_cycles", "hrm.l_cycles"].map(|key| builder.hyper.u64(key));
    let (slow, fast) = (slow?.clamp(1, MAX_LOOPS), fast?.clamp(1, MAX_LOOPS));
    let mut high = embedding(builder, &family)?;
    let first = builder.weight("hrm.z_l_init")?;
    let mut low = None;
    for _ in 0..slow {
        for _ in 0..fast {
            let input = match low {
                Some(low) => builder.add(high, low),
                None => builder.op(Bias { x: high, weight: first }),
            };
            low = Some(stack(builder, input, 0..per_stack, &family)?);
        }
        let input = low.map_or(high, |low| builder.add(high, low));
        high = stack(builder, input, per_stack..per_stack.saturating_mul(2), &family)?;
    }
    // The last norm stands in the stack.
    let family = Decoder { weightless_norms: false, ..family };
    finish(builder, high, &family)
}

fn stack(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    numbers: std::ops::Range<u64>,
    family: &Decoder,
) -> Result<ValueId, Finding> {
    for number in numbers {
        builder.at("blk.", Some(number));
        x = layer(builder, x, number, family)?;
    }
    builder.at("", None);
    Ok(builder.weightless_norm(x, family.norm, 1))
}
