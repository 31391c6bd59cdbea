//! Computation graph of Nanbeige 4.2.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, embedding, finish, layer, layers};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder whose layers run several times, with the output norm between the loops.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    let stated = builder.hparams.value(key::NUM_LOOPS).is_some();
    let loops = if stated { builder.hparams.u64(key::NUM_LOOPS)?.clamp(1, MAX_LOOPS) } else { 1 };
    let skips_norm = builder.hparams.value(key::SKIP_LOOP_FINAL_NORM).is_some()
        && builder.hparams.bool(key::SKIP_LOOP_FINAL_NORM)?;
    let mut x = embedding(builder, &decoder)?;
    for iteration in 0..loops {
        if iteration > 0 && !skips_norm {
            x = builder.norm(x, "output_norm", decoder.norm);
        }
        for index in 0..layers(builder)? {
            builder.set_layer("blk.", Some(index));
            x = layer(builder, x, index, &decoder)?;
        }
        builder.set_layer("", None);
    }
    finish(builder, x, &decoder)
}

/// Maximum number of loops, more than any model has.
pub(crate) const MAX_LOOPS: u64 = 64;
