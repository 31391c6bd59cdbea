//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

/// GPT-2 and StarCoder, which learn positions, and Bloom, which has ALiBi and a norm of the embedding.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let family = Decoder { function: ActivationFunction::GeluTanh, ..Decoder::plain(norm) };
    decoder(builder, &family)
}
