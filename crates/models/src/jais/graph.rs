//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one part.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks::{Decoder, Heads, decoder};
use crate::graph::{Builder, Norm};

/// As GPT-2 with gates and ALiBi; scores are divided by the length of a head.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let len = Heads::of(builder, 0)?.key_len.max(1) as f32;
    let family = Decoder {
        function: ActivationFunction::Silu,
        attention_scale: Some(1.0 / len),
        ..Decoder::plain(norm)
    };
    decoder(builder, &family)
}
