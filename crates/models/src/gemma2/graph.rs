//! Gemma 1, 2 and 3, and the encoder made of the third.

use gguf::Finding;

use crate::blocks::{Decoder, Windows, decoder};
use crate::gemma::graph::usual;
use crate::graph::Builder;

/// Every other layer is windowed, beginning with the first.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { windows: Windows::AllButLast(2), ..usual(builder, 46)? };
    decoder(builder, &family)
}
