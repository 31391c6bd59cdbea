//! Computation graph of Hunyuan, dense and MoE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::graph::Builder;
use crate::maincoder::graph::build_with_layout;

/// Builds a Llama decoder with QK-norm after RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    build_with_layout(builder, RopeLayout::Neox)
}
