//! DeepSeek 2 and 3, PLM and MiniCPM 3: keys and values are compressed, and experts follow some dense
//! layers.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::deepseek2::graph::{attention, scale};
use crate::graph::Builder;
use crate::schema::key;

/// MiniCPM 3: scales that no key tells.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let layers = builder.hyper.u64(key::BLOCK_COUNT)? as f32;
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let family = Decoder {
        attention,
        attention_scale: Some(scale(builder)?),
        embedding_scale: 12.0,
        residual_scale: 1.4 / layers.sqrt(),
        logit_scale: 256.0 / width,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
