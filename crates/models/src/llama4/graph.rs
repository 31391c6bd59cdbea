//! Computation graph of the text model of Llama 4.

use gguf::Finding;
use gguf_graph::{AttentionTemperature, Gating, Mask, NormKind, Rope, RopeLayout, ValueId};

use crate::blocks::{self, Attend, Decoder, attend_to, project_qkv};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Default chunk size of attention, and default length of a step of the attention temperature.
const DEFAULT_LENGTH: u32 = 8192;

/// Default scale of the attention temperature.
const DEFAULT_TEMPERATURE_SCALE: f32 = 0.1;

/// Number of experts of the model size without QK-norm.
const EXPERTS_WITHOUT_QK_NORM: u64 = 128;

/// Builds a MoE decoder whose sigmoid router weights multiply the input of the experts.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { attention, ..Decoder::llama_like(builder, RopeLayout::Interleaved)? };
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    decoder.routing.weigh_input = true;
    blocks::decoder(builder, &decoder)
}

/// Adds attention: chunked with RoPE in three of four layers; full, with an attention temperature
/// in place of RoPE, in the fourth.
fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let [mut query, mut key, value] = project_qkv(builder, x, &attend)?;
    let chunk = stated_or(builder, "attention.sliding_window", DEFAULT_LENGTH)?;
    let uses_rope = chunk == 0 || layer % 4 != 3;
    attend.mask = if chunk > 0 && uses_rope { Mask::Chunked(chunk) } else { Mask::Causal };
    if uses_rope {
        let [heads, heads_kv] = [attend.heads.heads, attend.heads.heads_kv];
        query = rope_and_norm(builder, query, heads, &attend)?;
        key = rope_and_norm(builder, key, heads_kv, &attend)?;
    } else {
        let length = stated_or(builder, "attention.temperature_length", DEFAULT_LENGTH)?;
        let scale = builder
            .f32_or_default(key::ATTENTION_TEMPERATURE_SCALE)?
            .unwrap_or(DEFAULT_TEMPERATURE_SCALE);
        query = builder.op(AttentionTemperature { x: query, offset: 1, length, scale });
    }
    let attended = attend_to(builder, [query, key, value], &attend);
    builder.matmul(attended, "attn_output")
}

/// Adds RoPE, then an RMS norm without weights per head.
fn rope_and_norm(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    heads: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    if let Some(rope) = attend.rope.clone() {
        x = builder.op(Rope { x, heads, parameters: rope });
    }
    if builder.hparams.u64(key::EXPERT_COUNT)? == EXPERTS_WITHOUT_QK_NORM {
        return Ok(x);
    }
    let Norm { epsilon, .. } = attend.norm;
    let kind = NormKind::Rms;
    Ok(builder.op(kind.op(x, epsilon, heads, None, None)))
}

/// Returns a key of the file, or a default.
fn stated_or(builder: &Builder<'_>, name: &str, default: u32) -> Result<u32, Finding> {
    if builder.hparams.value(name).is_some() { builder.size(name) } else { Ok(default) }
}
