//! Graph of `gemma2`: Gemma with sandwich norms and a sliding window.

use gguf::Finding;

use crate::blocks::{self, Decoder, WindowPattern};
use crate::gemma::graph::gemma_decoder;
use crate::graph::Builder;

/// Every other layer has a sliding window, beginning with the first.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder =
        Decoder { window_pattern: WindowPattern::AllButLast(2), ..gemma_decoder(builder, 46)? };
    blocks::decoder(builder, &decoder)
}
