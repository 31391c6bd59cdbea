//! Computation graph of MPT: a decoder with layer norms and ALiBi or learned positions.

use gguf::Finding;

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    decoder(builder, &Decoder::without_rope(norm))
}
