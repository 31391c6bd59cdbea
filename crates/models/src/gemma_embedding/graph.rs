//! Gemma 1, 2 and 3, and the encoder made of the third.

use gguf::Finding;

use crate::blocks::decoder;
use crate::gemma::graph::usual;
use crate::gemma3::graph::third;
use crate::graph::Builder;

/// The third generation as an encoder, unless the model says that it is none.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = third(usual(builder, 0)?);
    decoder(builder, &family)
}
