//! Graph of `glm4`: Llama with partial RoPE and sandwich norms.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// RoPE has the interleaved layout, or the NeoX layout in models with M-RoPE sections (vision
/// models). Sections are equal for text.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let sections =
        builder.hparams.value(key::ROPE_DIMENSION_SECTIONS).and_then(|all| all.as_array());
    let sections = sections.into_iter().flat_map(|all| all.iter()).take(2);
    let has_mrope =
        sections.filter(|section| section.to_i64().is_some_and(|len| len > 0)).count() == 2;
    let layout = if has_mrope { RopeLayout::Neox } else { RopeLayout::Interleaved };
    let decoder = Decoder::llama_like(builder, layout)?;
    blocks::decoder(builder, &decoder)
}
