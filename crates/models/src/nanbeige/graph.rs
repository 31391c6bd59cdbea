//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one part.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, embedding, finish, layer, layers};
use crate::graph::Builder;
use crate::schema::key;

/// The layers are run through several times, with the last norm between.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    let stated = builder.hyper.stated(key::NUM_LOOPS).is_some();
    let loops = if stated { builder.hyper.u64(key::NUM_LOOPS)?.clamp(1, MOST_LOOPS) } else { 1 };
    let skips = builder.hyper.stated(key::SKIP_LOOP_FINAL_NORM).is_some()
        && builder.hyper.bool(key::SKIP_LOOP_FINAL_NORM)?;
    let mut x = embedding(builder, &family)?;
    for number in 0..loops {
        if number > 0 && !skips {
            x = builder.norm(x, "output_norm", family.norm);
        }
        for number in 0..layers(builder)? {
            builder.at("blk.", Some(number));
            x = layer(builder, x, number, &family)?;
        }
        builder.at("", None);
    }
    finish(builder, x, &family)
}

/// More than any model has.
pub(crate) const MOST_LOOPS: u64 = 64;
