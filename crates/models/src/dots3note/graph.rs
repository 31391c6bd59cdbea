//! DeepSeek 3.2, GLM 5 and dots 3: compressed attention to the tokens that an indexer chooses.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{Attend, Decoder, decoder};
use crate::deepseek2;
use crate::deepseek2::graph::Widths;
use crate::deepseek32::graph::usual;
use crate::deepseek32::graph::{EPSILON, Indexer};
use crate::graph::Builder;

/// dots 3: layers with a window have compressed attention of other widths and no indexer, and what
/// attention gives has a gate for each head.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder { attention: dots3_attention, ..usual(builder)? };
    family.attention_scale = None;
    decoder(builder, &family)
}

fn dots3_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let is_windowed = attend.mask.is_sliding_window();
    let widths = if is_windowed { Widths::of_window(builder)? } else { Widths::of(builder)? };
    attend.scale = 1.0 / (widths.key as f32).sqrt();
    let compressed = deepseek2::graph::compressed_queries(builder, x, &attend)?;
    if !is_windowed {
        let indexer = Indexer { pairs: RopeLayout::Neox, start: 0, epsilon: EPSILON };
        attend.among = Some(indexer.choose(builder, x, compressed, &attend)?);
    }
    deepseek2::graph::attend(builder, x, compressed, widths, &mut attend)
}
