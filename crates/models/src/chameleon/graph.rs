//! Graph of `chameleon`: Llama with layer norms of queries and keys, and optional post-norms.

use gguf::Finding;
use gguf_graph::{NormKind, RopeLayout, ValueId};

use crate::blocks::{self, Decoder, attend, attention, ffn};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Logits of image tokens are suppressed.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.norm = Norm { kind: NormKind::Layer, epsilon: QK_NORM_EPSILON };
            attention(builder, x, &attend)
        },
        suppressed_tokens: Some(IMAGE_TOKENS),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    if builder.hparams.value(key::SWIN_NORM).is_some() && builder.hparams.bool(key::SWIN_NORM)? {
        decoder.layer = post_norm_layer;
    }
    blocks::decoder(builder, &decoder)
}

/// Epsilon of QK-norm, for which files have no key.
const QK_NORM_EPSILON: f32 = 1e-5;

/// Ids of image tokens in all models: the first, and one past the last.
const IMAGE_TOKENS: (u32, u32) = (4, 8196);

/// Swin norm: `x + norm(attention(x))`, then `x + norm(ffn(x))`.
fn post_norm_layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let attend = attend(builder, layer, decoder)?;
    let attended = (decoder.attention)(builder, x, layer, attend)?;
    let attended = builder.norm(attended, "attn_norm", decoder.norm);
    let x = builder.add(x, attended);
    let ffn_output = ffn(builder, x, layer, decoder)?;
    let ffn_output = builder.norm(ffn_output, "ffn_norm", decoder.norm);
    Ok(builder.add(x, ffn_output))
}
