//! Maincoder and Hunyuan, dense and with experts: queries and keys are normed after they are rotated.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::decoder;
use crate::graph::Builder;
use crate::maincoder::graph::usual;
use crate::schema::key;

/// The models that see images too state how positions are stretched as a factor of the base.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = usual(builder, RopeLayout::Neox)?;
    let alpha = builder.stated(key::ROPE_SCALING_ALPHA)?.filter(|alpha| *alpha > 0.0);
    let len = builder.size(key::ATTENTION_KEY_LENGTH)? as f32;
    for rotation in [&mut family.rotation, &mut family.window_rotation].into_iter().flatten() {
        if let Some(alpha) = alpha {
            rotation.freq_base *= alpha.powf(len / (len - 2.0));
        }
    }
    decoder(builder, &family)
}
