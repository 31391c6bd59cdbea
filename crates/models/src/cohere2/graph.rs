//! Command R, Command R7B and North Mini: attention and feed-forward share one norm.

use gguf::Finding;

use crate::blocks::{Decoder, Windows, decoder};
use crate::command_r::graph::usual;
use crate::graph::Builder;

/// Of four layers the last has no window and does not rotate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { windows: Windows::AllButLast(4), rotation: None, ..usual(builder)? };
    decoder(builder, &family)
}
