//! Graph of `cohere2`: Command R with a sliding window.

use gguf::Finding;

use crate::blocks::{self, Decoder, WindowPattern};
use crate::command_r::graph::command_r_decoder;
use crate::graph::Builder;

/// Every fourth layer has full attention without RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        rope: None,
        ..command_r_decoder(builder)?
    };
    blocks::decoder(builder, &decoder)
}
