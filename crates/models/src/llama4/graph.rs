//! Llama 4.

use gguf::Finding;
use gguf_graph::{AttentionTemperature, Gating, Mask, NormKind, Rope, RopeLayout, ValueId};

use crate::blocks::{Attend, Decoder, attend_to, decoder, queries_keys_values};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Positions of a chunk, and between two steps of the sharpening: those of all models so far.
const LENGTH: u32 = 8192;

/// By how much attention is sharpened.
const SHARPENING: f32 = 0.1;

/// Experts of the one size that does not normalize queries and keys.
const EXPERTS_WITHOUT_NORM: u64 = 128;

/// The scores of experts weigh what goes in. Three of four layers rotate, and attend within chunks of
/// positions; the last sharpens attention with the position instead.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder { attention, ..Decoder::gated(builder, RopeLayout::Interleaved)? };
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    family.routing.weigh_input = true;
    decoder(builder, &family)
}

fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let [mut query, mut key, value] = queries_keys_values(builder, x, &attend)?;
    let window = stated_or(builder, "attention.sliding_window", LENGTH)?;
    let rotates = window == 0 || layer % 4 != 3;
    attend.mask = if window > 0 && rotates { Mask::Chunked(window) } else { Mask::Causal };
    if rotates {
        let [heads, heads_kv] = [attend.heads.heads, attend.heads.heads_kv];
        query = rotated(builder, query, heads, &attend)?;
        key = rotated(builder, key, heads_kv, &attend)?;
    } else {
        let length = stated_or(builder, "attention.temperature_length", LENGTH)?;
        let scale = builder.known(key::ATTENTION_TEMPERATURE_SCALE)?.unwrap_or(SHARPENING);
        query = builder.op(AttentionTemperature { x: query, offset: 1, length, scale });
    }
    let attended = attend_to(builder, [query, key, value], &attend);
    builder.product(attended, "attn_output")
}

/// Queries or keys rotated, and then normed head by head.
fn rotated(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    heads: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    if let Some(rotation) = attend.rotation.clone() {
        x = builder.op(Rope { x, heads, parameters: rotation });
    }
    if builder.hyper.u64(key::EXPERT_COUNT)? == EXPERTS_WITHOUT_NORM {
        return Ok(x);
    }
    let Norm { epsilon, .. } = attend.norm;
    let kind = NormKind::Rms;
    Ok(builder.op(kind.op(x, epsilon, heads, None, None)))
}

fn stated_or(builder: &Builder<'_>, name: &str, usual: u32) -> Result<u32, Finding> {
    if builder.hyper.stated(name).is_some() { builder.size(name) } else { Ok(usual) }
}
