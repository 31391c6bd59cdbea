//! Graph of `dots3note`: MLA with a sliding window, or with an indexer.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{self, Attend, Decoder};
use crate::deepseek2;
use crate::deepseek2::graph::MlaDims;
use crate::deepseek32::graph::{Indexer, KEY_NORM_EPSILON, deepseek32_decoder};
use crate::graph::Builder;

/// The attention scale is that of the layer: MLA dimensions differ between layers with a sliding
/// window and layers with full attention.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder { attention, ..deepseek32_decoder(builder)? };
    decoder.attention_scale = None;
    blocks::decoder(builder, &decoder)
}

/// MLA with the dimensions of the layer type; the gate per head is applied by
/// [`deepseek2::graph::mla`].
fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let is_sliding = attend.mask.is_sliding_window();
    let dims =
        if is_sliding { MlaDims::of_sliding_window(builder)? } else { MlaDims::of(builder)? };
    attend.scale = 1.0 / (dims.key as f32).sqrt();
    let latent = deepseek2::graph::query_latent(builder, x, &attend)?;
    if !is_sliding {
        let indexer = Indexer { layout: RopeLayout::Neox, start: 0, epsilon: KEY_NORM_EPSILON };
        attend.selection = Some(indexer.select(builder, x, latent, &attend)?);
    }
    deepseek2::graph::mla(builder, x, latent, dims, &mut attend)
}
