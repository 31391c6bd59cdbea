//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Decoder, decoder};
use crate::op::Function;
use crate::rotation::Pairs;

/// GPT-2 and StarCoder, which learn positions, and Bloom, which has ALiBi and a norm of the embedding.
pub(super) fn gpt2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    let family = Decoder { function: Function::GeluTanh, ..Decoder::plain(norm) };
    decoder(builder, &family)
}

/// Attention and feed-forward share one norm.
pub(super) fn gptj(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: Function::GeluTanh,
        parallel: true,
        ..Decoder::rotated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}

pub(super) fn gptneox(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = builder.hyper.bool("use_parallel_residual")?;
    let family = Decoder { parallel, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}

/// Positions by ALiBi, or learned.
pub(super) fn mpt(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    decoder(builder, &Decoder::plain(norm))
}

/// StarCoder 2 and CodeShell.
pub(super) fn starcoder2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { function: Function::GeluTanh, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}

/// PLaMo: as llama, but attention and feed-forward share one norm.
pub(super) fn plamo(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { parallel: true, ..Decoder::gated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}

/// As llama, but for norms with a mean.
pub(super) fn orion(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { function: Function::Silu, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}
