//! Grok 1 and 2.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout, RopeScaling, ValueId};

use crate::blocks::{Decoder, attention, decoder, experts, feed_forward, sharper};
use crate::graph::Builder;
use crate::schema::key;

/// Numbers of the first model, whose files have no keys for them.
const EMBEDDING_SCALE: f32 = 78.383_67;

const LOGIT_SCALE: f32 = 0.577_350_26;

const ATTENTION_SCALE: f32 = 0.088_388_35;

const ATTENTION_CAP: f32 = 30.0;

/// The weights of experts stay what they are among all, as its authors have it (llama.cpp makes them
/// sum to 1, and does not bound the scores). Contexts of more than 1024 tokens, where the second model
/// sharpens attention, are attended to as shorter ones are, as llama.cpp does.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let embedding_scale = builder.stated(key::EMBEDDING_SCALE)?.unwrap_or(EMBEDDING_SCALE);
    let logit_scale = builder.stated(key::LOGIT_SCALE)?.unwrap_or(LOGIT_SCALE);
    let attention_scale = builder.stated(key::ATTENTION_OUTPUT_SCALE)?.unwrap_or(ATTENTION_SCALE);
    let mut family = Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale,
        logit_scale,
        attention_scale: Some(attention_scale),
        attention: |builder, x, _, mut attend| {
            attend.soft_cap = attend.soft_cap.or(Some(ATTENTION_CAP));
            attention(builder, x, &attend)
        },
        network,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    // What the model states for YaRN multiplies what is usual there.
    let factor = builder.stated(key::ROPE_SCALING_YARN_ATTN_FACTOR)?.unwrap_or(1.0);
    for rotation in [&mut family.rotation, &mut family.window_rotation].into_iter().flatten() {
        if let RopeScaling::Yarn { factor: by, .. } = rotation.scaling {
            rotation.attention_factor = factor * sharper(by, 1.0);
        }
    }
    family.routing.normalize = false;
    family.routing.function = GluFunction::Plain(ActivationFunction::GeluTanh);
    let cap = builder.stated(key::ROUTER_LOGIT_SOFTCAPPING)?;
    family.routing.soft_cap = cap.filter(|cap| *cap > 0.0);
    decoder(builder, &family)
}

/// Experts, in the second model beside a dense network, of which half the power counts each.
fn network(
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
    let both = builder.add(dense, routed);
    Ok(builder.scale(both, std::f32::consts::FRAC_1_SQRT_2))
}
