//! Computation graph of Grok 1 and 2.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout, RopeScaling, ValueId};

use crate::blocks::{self, Decoder, attention, experts, feed_forward, yarn_attention_factor};
use crate::graph::Builder;
use crate::schema::key;

/// Multipliers of Grok 1, whose files have no keys for them.
const EMBEDDING_SCALE: f32 = 78.383_67;

const LOGIT_SCALE: f32 = 0.577_350_26;

const ATTENTION_SCALE: f32 = 0.088_388_35;

/// Default soft cap of attention logits.
const ATTENTION_CAP: f32 = 30.0;

/// Builds a MoE decoder with soft-capped attention. Expert weights are not normalized and router
/// logits are soft-capped, as in the original code (llama.cpp normalizes the weights and omits the
/// cap). The attention temperature of Grok 2 beyond 1024 tokens is not applied, as in llama.cpp.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let embedding_scale = builder.f32_if_present(key::EMBEDDING_SCALE)?.unwrap_or(EMBEDDING_SCALE);
    let logit_scale = builder.f32_if_present(key::LOGIT_SCALE)?.unwrap_or(LOGIT_SCALE);
    let attention_scale =
        builder.f32_if_present(key::ATTENTION_OUTPUT_SCALE)?.unwrap_or(ATTENTION_SCALE);
    let mut decoder = Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale,
        logit_scale,
        attention_scale: Some(attention_scale),
        attention: |builder, x, _, mut attend| {
            attend.soft_cap = attend.soft_cap.or(Some(ATTENTION_CAP));
            attention(builder, x, &attend)
        },
        ffn: moe_and_dense,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    // The stated attention factor multiplies the default of YaRN.
    let factor = builder.f32_if_present(key::ROPE_SCALING_YARN_ATTN_FACTOR)?.unwrap_or(1.0);
    for rope in [&mut decoder.rope, &mut decoder.window_rope].into_iter().flatten() {
        if let RopeScaling::Yarn { factor: by, .. } = rope.scaling {
            rope.attention_factor = factor * yarn_attention_factor(by, 1.0);
        }
    }
    decoder.routing.normalize = false;
    decoder.routing.function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let cap = builder.f32_if_present(key::ROUTER_LOGIT_SOFTCAPPING)?;
    decoder.routing.soft_cap = cap.filter(|cap| *cap > 0.0);
    blocks::decoder(builder, &decoder)
}

/// Adds MoE; in Grok 2, `(dense FFN + MoE) / sqrt(2)`.
fn moe_and_dense(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let routed = experts(builder, x, layer, decoder.routing)?;
    if !builder.has("ffn_up.weight") {
        return Ok(routed);
    }
    let dense = feed_forward(builder, x, decoder.function, "")?;
    let sum = builder.add(dense, routed);
    Ok(builder.scale(sum, std::f32::consts::FRAC_1_SQRT_2))
}
