//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

/// Positions by ALiBi, or learned.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    decoder(builder, &Decoder::plain(norm))
}
