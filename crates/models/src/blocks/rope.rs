//! RoPE from the hyper-parameters of a model.

use gguf::Finding;
use gguf_graph::{FreqFactors, Rope, RopeLayout, RopeParameters, RopeScaling, ValueId};

use crate::graph::Builder;
use crate::schema::key;

/// Returns the RoPE parameters in this layout; `None` without rotary dimensions.
///
/// The keys `rope.*` are read as llama.cpp does (`llama-context.cpp`, `ggml_rope_yarn`), except that an
/// attention factor stated for YaRN applies, as in `transformers`.
pub(crate) fn rope(
    builder: &mut Builder<'_>,
    pairs: RopeLayout,
) -> Result<Option<RopeParameters>, Finding> {
    let base = builder.hparams.f32(key::ROPE_FREQ_BASE)?;
    let count = builder.size(key::ROPE_DIMENSION_COUNT)?;
    rotation_of_base(builder, pairs, base, count)
}

/// Returns the RoPE parameters of sliding-window layers, which may have another base frequency and other
/// rotary dimensions.
pub(crate) fn window_rope(
    builder: &mut Builder<'_>,
    pairs: RopeLayout,
) -> Result<Option<RopeParameters>, Finding> {
    let base = match builder.f32_or_default(key::ROPE_FREQ_BASE_SWA)? {
        Some(base) => base,
        None => builder.hparams.f32(key::ROPE_FREQ_BASE)?,
    };
    let own = "rope.dimension_count_swa";
    let is_own = builder.hparams.value(own).is_some();
    let count = builder.size(if is_own { own } else { "rope.dimension_count" })?;
    rotation_of_base(builder, pairs, base, count)
}

fn rotation_of_base(
    builder: &mut Builder<'_>,
    pairs: RopeLayout,
    base: f32,
    count: u32,
) -> Result<Option<RopeParameters>, Finding> {
    if count == 0 {
        return Ok(None);
    }
    let hyper = &builder.hparams;
    // The newest of its names.
    let names = ["rope.scaling.factor", "rope.scale_linear", "rope.scale"];
    let stated = names.into_iter().find(|name| hyper.value(name).is_some());
    let factor = stated.map_or(Ok(1.0), |name| builder.scale_or_one(name))?;
    let mut magnitude = hyper.f32(key::ROPE_SCALING_ATTN_FACTOR)?;
    let stretch = match hyper.str(key::ROPE_SCALING_TYPE)? {
        "none" => RopeScaling::None,
        "yarn" => {
            magnitude *= match builder.f32_if_present(key::ROPE_SCALING_YARN_ATTN_FACTOR)? {
                Some(stated) => stated,
                None => {
                    let by = hyper.f32(key::ROPE_SCALING_YARN_LOG_MULTIPLIER)?;
                    yarn_attention_factor(factor, 1.0) / yarn_attention_factor(factor, by)
                }
            };
            RopeScaling::Yarn {
                factor,
                original_context: builder.size(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH)?,
                beta_fast: hyper.f32(key::ROPE_SCALING_YARN_BETA_FAST)?,
                beta_slow: hyper.f32(key::ROPE_SCALING_YARN_BETA_SLOW)?,
                truncate: true,
            }
        }
        _ if factor == 1.0 => RopeScaling::None,
        _ => RopeScaling::Linear(factor),
    };
    let factors = factors(builder)?;
    let (block, inverse) = (1, false);
    Ok(Some(RopeParameters {
        layout: pairs,
        start: 0,
        dimensions: count,
        freq_base: base,
        scaling: stretch,
        attention_factor: magnitude,
        freq_factors: factors,
        block,
        inverse,
    }))
}

/// Returns YaRN's attention factor `by * ln(factor) * 0.1 + 1`, by which queries and keys are scaled.
pub(crate) fn yarn_attention_factor(factor: f32, by: f32) -> f32 {
    if factor > 1.0 { 1.0 + 0.1 * by * factor.ln() } else { 1.0 }
}

/// Returns the frequency factors: the tensors, outside of layers, that divide the frequencies.
fn factors(builder: &mut Builder<'_>) -> Result<FreqFactors, Finding> {
    let of = |builder: &mut Builder<'_>, name| builder.find_global(name);
    if let Some(weight) = of(builder, "rope_freqs.weight") {
        return Ok(FreqFactors::Fixed(weight));
    }
    let long = of(builder, "rope_factors_long.weight");
    let short = of(builder, "rope_factors_short.weight");
    Ok(match (short, long) {
        (Some(short), Some(long)) => {
            let original = builder.size(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH)?;
            FreqFactors::LongRope { short, long, original_context: original }
        }
        _ => FreqFactors::None,
    })
}

/// Adds RoPE to the heads of `x`, if there are parameters.
pub(crate) fn apply_rope(
    builder: &mut Builder<'_>,
    x: ValueId,
    heads: u32,
    rope: &Option<RopeParameters>,
) -> ValueId {
    match rope.clone() {
        Some(rope) => builder.op(Rope { x, heads, parameters: rope }),
        None => x,
    }
}
