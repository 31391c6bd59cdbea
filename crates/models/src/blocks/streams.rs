//! Concatenated residual streams and their mixing weights.

use gguf::Finding;
use gguf_graph::{Activation, ActivationFunction, Bias, Concat, Mul, MulWeight, Slice, ValueId};

use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Returns the number of residual streams.
pub(crate) fn stream_count(builder: &Builder<'_>) -> Result<u32, Finding> {
    Ok(builder.size(key::HYPER_CONNECTION_COUNT)?.clamp(1, 64))
}

/// Adds the concatenation of all values.
pub(crate) fn concatenated(
    builder: &mut Builder<'_>,
    first: ValueId,
    others: &[ValueId],
) -> ValueId {
    let join = |a, b: &ValueId| builder.op(Concat { a, b: *b, groups: 1, broadcast: false });
    others.iter().fold(first, join)
}

/// Adds the sigmoid mixing weights of the concatenated streams, from the matrix `name_fn`, the scales
/// `name_scale` and the bias `name_base`.
pub(crate) fn mixing_weights(
    builder: &mut Builder<'_>,
    streams: ValueId,
    name: &str,
    norm: Norm,
) -> Result<ValueId, Finding> {
    let x = builder.norm_without_weight(streams, norm, 1);
    let x = builder.matmul(x, &format!("{name}_fn"))?;
    let weight = builder.weight(&format!("{name}_scale.weight"))?;
    let x = builder.op(MulWeight { x, weight });
    let weight = builder.weight(&format!("{name}_base.weight"))?;
    let x = builder.op(Bias { x, weight });
    Ok(builder.op(Activation { x, function: ActivationFunction::Sigmoid }))
}

/// Adds `x` times one column of the mixing weights.
pub(crate) fn share(
    builder: &mut Builder<'_>,
    x: ValueId,
    shares: ValueId,
    number: u32,
) -> ValueId {
    let share = builder.op(Slice { x: shares, groups: 1, start: number, len: 1 });
    builder.op(Mul { a: x, b: share })
}

/// Adds the sum of all values times their mixing weights.
pub(crate) fn weighted_sum(
    builder: &mut Builder<'_>,
    first: ValueId,
    others: &[ValueId],
    shares: ValueId,
) -> ValueId {
    let first = share(builder, first, shares, 0);
    let parts: Vec<_> =
        others.iter().zip(1..).map(|(x, number)| share(builder, *x, shares, number)).collect();
    parts.into_iter().fold(first, |sum, part| builder.add(sum, part))
}

/// Adds the mean of equal parts of each row.
pub(crate) fn mean_of_groups(
    builder: &mut Builder<'_>,
    x: ValueId,
    count: u32,
    len: u32,
) -> ValueId {
    let part = |builder: &mut Builder<'_>, number: u32| {
        builder.op(Slice { x, groups: 1, start: number.saturating_mul(len), len })
    };
    let first = part(builder, 0);
    let sum = (1..count).fold(first, |sum, number| {
        let part = part(builder, number);
        builder.add(sum, part)
    });
    builder.scale(sum, 1.0 / count as f32)
}
