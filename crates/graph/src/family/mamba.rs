//! Mamba, FalconMamba and Mamba 2.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Decoder, finish};
use crate::op::{Function, GateFunction, NormKind, Op, Scan};
use crate::raw::{State, ValueId};

/// Epsilon of the norms inside of FalconMamba's layers, for which files have no key: that of all of
/// its models.
const INNER_EPSILON: f32 = 1e-6;

/// The extents of a layer.
struct Sizes {
    inner: u32,
    kernel: u32,
    numbers: u32,
    /// Rank of the time steps; in Mamba 2 the number of heads.
    rank: u32,
}

pub(super) fn mamba(builder: &mut Builder<'_>) -> Result<(), Finding> {
    layers(builder, first)
}

pub(super) fn mamba2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    layers(builder, second)
}

/// What a generation does between the norm and the sum.
type Mixer = fn(&mut Builder<'_>, ValueId, &Sizes) -> Result<ValueId, Finding>;

fn layers(builder: &mut Builder<'_>, mixer: Mixer) -> Result<(), Finding> {
    let sizes = Sizes {
        inner: builder.size("ssm.inner_size")?,
        kernel: builder.size("ssm.conv_kernel")?,
        numbers: builder.size("ssm.state_size")?,
        rank: builder.size("ssm.time_step_rank")?,
    };
    let norm = Norm::mean_square(builder)?;
    let mut x = builder.embedding()?;
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = mixer(builder, normed, &sizes)?;
        let out = builder.product(mixed, "ssm_out")?;
        x = builder.add(x, out);
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}

/// Every number of a row is a head; time steps, and what goes into states and out of them, are made
/// of the convolved input.
fn first(builder: &mut Builder<'_>, x: ValueId, sizes: &Sizes) -> Result<ValueId, Finding> {
    let Sizes { inner, numbers, rank, .. } = *sizes;
    let both = builder.product(x, "ssm_in")?;
    let [x, gate] = builder.split(both, [inner, inner]);
    let x = convolved(builder, x, sizes, inner)?;
    let made = builder.product(x, "ssm_x")?;
    let mut parts = builder.split(made, [rank, numbers, numbers]);
    if builder.hyper.bool("ssm.dt_b_c_rms")? {
        let norm = Norm { kind: NormKind::MeanSquare, epsilon: INNER_EPSILON };
        let names = ["ssm_dt_norm", "ssm_b_norm", "ssm_c_norm"];
        for (part, name) in parts.iter_mut().zip(names) {
            *part = builder.norm(*part, name, norm);
        }
    }
    let [dt, b, c] = parts;
    let dt = builder.product(dt, "ssm_dt")?;
    let y = scanned(builder, x, dt, [b, c], 1, sizes)?;
    Ok(builder.op(Op::Gate { gate, up: y, function: GateFunction::Plain(Function::Silu) }))
}

/// Heads have many numbers; one matrix makes everything, and what goes into states and out of them is
/// convolved too.
fn second(builder: &mut Builder<'_>, x: ValueId, sizes: &Sizes) -> Result<ValueId, Finding> {
    let Sizes { inner, numbers, rank, .. } = *sizes;
    let groups = builder.size("ssm.group_count")?;
    let shared = groups.saturating_mul(numbers);
    let channels = shared.saturating_mul(2).saturating_add(inner);
    let made = builder.product(x, "ssm_in")?;
    let [gate, x, dt] = builder.split(made, [inner, channels, rank]);
    let x = convolved(builder, x, sizes, channels)?;
    let [x, b, c] = builder.split(x, [inner, shared, shared]);
    let bias = builder.weight("ssm_dt.bias")?;
    let dt = builder.op(Op::AddWeight { x: dt, weight: bias });
    let y = scanned(builder, x, dt, [b, c], groups, sizes)?;
    let y = builder.op(Op::Gate { gate, up: y, function: GateFunction::Plain(Function::Silu) });
    let norm = Norm::mean_square(builder)?;
    Ok(builder.norm_parts(y, "ssm_norm", norm, groups))
}

fn convolved(
    builder: &mut Builder<'_>,
    x: ValueId,
    sizes: &Sizes,
    width: u32,
) -> Result<ValueId, Finding> {
    let state = builder.state(State::Rows { width, rows: sizes.kernel.saturating_sub(1) });
    let weight = builder.weight("ssm_conv1d.weight")?;
    let bias = builder.find("ssm_conv1d.bias");
    let x = builder.op(Op::CausalConvolution { x, weight, bias, state });
    Ok(builder.op(Op::Activate { x, function: Function::Silu }))
}

fn scanned(
    builder: &mut Builder<'_>,
    x: ValueId,
    dt: ValueId,
    [b, c]: [ValueId; 2],
    groups: u32,
    sizes: &Sizes,
) -> Result<ValueId, Finding> {
    let dt = builder.op(Op::Activate { x: dt, function: Function::Softplus });
    let (a, d) = (builder.weight("ssm_a")?, builder.weight("ssm_d")?);
    let state = builder.state(State::Floats { len: sizes.inner.saturating_mul(sizes.numbers) });
    Ok(builder.op(Op::Scan(Scan { x, dt, b, c, a, d, groups, state })))
}
