//! Maincoder and Hunyuan, dense and with experts: queries and keys are normed after they are rotated.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::graph::Builder;
use crate::maincoder::graph::turned_first;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    turned_first(builder, RopeLayout::Neox)
}
