//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one
//! part.

use gguf::Finding;
use gguf_graph::{NormKind, RopeLayout, ValueId};

use crate::blocks::{Decoder, attend, attention, decoder, network};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Meta's Chameleon, which may have its norms behind the parts of a layer. Tokens of images are
/// never said.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.norm = Norm { kind: NormKind::Layer, epsilon: HEAD_EPSILON };
            attention(builder, x, &attend)
        },
        silent: Some(IMAGE_TOKENS),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    if builder.hyper.stated(key::SWIN_NORM).is_some() && builder.hyper.bool(key::SWIN_NORM)? {
        family.layer = norms_behind;
    }
    decoder(builder, &family)
}

/// Of the norms of heads, which no key tells.
const HEAD_EPSILON: f32 = 1e-5;

/// Ids of the tokens of images, in all models.
const IMAGE_TOKENS: (u32, u32) = (4, 8196);

fn norms_behind(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let attend = attend(builder, layer, decoder)?;
    let attended = (decoder.attention)(builder, x, layer, attend)?;
    let attended = builder.norm(attended, "attn_norm", decoder.norm);
    let x = builder.add(x, attended);
    let fed = network(builder, x, layer, decoder)?;
    let fed = builder.norm(fed, "ffn_norm", decoder.norm);
    Ok(builder.add(x, fed))
}
