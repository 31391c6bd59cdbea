//! Graph of `cohere2`: Command R with a sliding window.

use gguf::Finding;

use crate::blocks::{self, Decoder, Windows};
use crate::command_r::graph::command_r_decoder;
use crate::graph::Builder;

/// Every fourth layer has full attention without RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder =
        Decoder { windows: Windows::AllButLast(4), rotation: None, ..command_r_decoder(builder)? };
    blocks::decoder(builder, &decoder)
}
