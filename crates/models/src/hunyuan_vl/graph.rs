//! Computation graph of the text model of Hunyuan vision-language models.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks;
use crate::graph::Builder;
use crate::maincoder::graph::rope_before_norm;
use crate::schema::key;

/// Builds a Llama decoder with QK-norm after RoPE, whose base frequency is scaled: `base *
/// alpha^(d/(d-2))`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = rope_before_norm(builder, RopeLayout::Neox)?;
    let alpha = builder.f32_if_present(key::ROPE_SCALING_ALPHA)?.filter(|alpha| *alpha > 0.0);
    let dims = builder.size(key::ATTENTION_KEY_LENGTH)? as f32;
    for rope in [&mut decoder.rope, &mut decoder.window_rope].into_iter().flatten() {
        if let Some(alpha) = alpha {
            rope.freq_base *= alpha.powf(dims / (dims - 2.0));
        }
    }
    blocks::decoder(builder, &decoder)
}
