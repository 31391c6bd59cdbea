//! RWKV 4, 6 and 7.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Decoder, finish};
use crate::op::{Function, NormKind, Op, Wkv};
use crate::raw::{State, ValueId};

/// RWKV 4: the share of the current token is what the mixes hold.
pub(super) fn rwkv4(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let width = builder.size("embedding_length")?;
    let every = builder.hyper.u64("rescale_every_n_layers")?;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        // Rows are halved every so many layers, and so is what the layers after add: only the
        // epsilon of norms notices.
        let halved = layer.checked_div(every).unwrap_or(0);
        let share = 0.5f32.powi(i32::try_from(halved).unwrap_or(i32::MAX));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix4(builder, normed, width)?;
        let mixed = builder.scale(mixed, share);
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, width, mixed_current)?;
        let mixed = builder.scale(mixed, share);
        x = builder.add(x, mixed);
        if (layer + 1).checked_rem(every) == Some(0) {
            x = builder.scale(x, 0.5);
        }
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}

/// RWKV 6: how much of the token before is mixed in depends on the tokens. The mixes hold its share.
pub(super) fn rwkv6(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let every = builder.hyper.u64("rescale_every_n_layers")?;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix6(builder, normed, sizes)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, sizes.width, mixed_before)?;
        x = builder.add(x, mixed);
        // The matrices of later layers are smaller by as much.
        if (layer + 1).checked_rem(every) == Some(0) {
            x = builder.scale(x, 0.5);
        }
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}

/// RWKV 7: states forget what is told by the tokens, and layers look at the values of the first.
pub(super) fn rwkv7(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let mut first = None;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix7(builder, normed, sizes, &mut first)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, sizes.width, mixed_before)?;
        x = builder.add(x, mixed);
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}

/// The norm with its epsilon, which files have in one of two spellings, or not at all.
fn norm(builder: &Builder<'_>) -> Result<Norm, Finding> {
    let stated = builder.known("attention.layer_norm_epsilon")?;
    let stated = stated.or(builder.known("attention.layer_norm_rms_epsilon")?);
    Ok(Norm { kind: NormKind::Variance, epsilon: stated.unwrap_or(1e-5) })
}

/// Epsilon of the norm of heads, the same in all models.
const HEAD_EPSILON: f32 = 64e-5;

/// The extents of a layer.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub width: u32,
    pub head_len: u32,
}

impl Sizes {
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        let (width, head_len) = (builder.size("embedding_length")?, builder.size("wkv.head_size")?);
        Ok(Self { width, head_len })
    }

    pub fn heads(self) -> u32 {
        self.width.checked_div(self.head_len).unwrap_or(0)
    }

    pub fn state(self) -> State {
        State::Floats { len: self.width.saturating_mul(self.head_len) }
    }
}

fn time_mix4(builder: &mut Builder<'_>, x: ValueId, width: u32) -> Result<ValueId, Finding> {
    let before = shifted(builder, x, width);
    let part = |builder: &mut Builder<'_>, lerp: &str, matrix: &str| {
        let mixed = mixed_current(builder, x, before, lerp)?;
        builder.product(mixed, matrix)
    };
    let k = part(builder, "time_mix_lerp_k", "time_mix_key")?;
    let v = part(builder, "time_mix_lerp_v", "time_mix_value")?;
    let r = part(builder, "time_mix_lerp_r", "time_mix_receptance")?;
    let decay = builder.weight("time_mix_decay.weight")?;
    let first = builder.weight("time_mix_first.weight")?;
    let state = builder.state(State::Floats { len: width.saturating_mul(3) });
    let made = builder.op(Op::Wkv(Wkv::V4 { k, v, decay, first, state }));
    let r = builder.op(Op::Activate { x: r, function: Function::Sigmoid });
    let gated = builder.op(Op::Multiply { a: made, b: r });
    builder.product(gated, "time_mix_output")
}

fn time_mix6(builder: &mut Builder<'_>, x: ValueId, sizes: Sizes) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let [w, k, v, r, g] = mixed_by_tokens(builder, x, width)?;
    let r = builder.product(r, "time_mix_receptance")?;
    let k = builder.product(k, "time_mix_key")?;
    let v = builder.product(v, "time_mix_value")?;
    let g = low_rank(builder, g, "time_mix_gate", Some(Function::Silu))?;
    let w = decay6(builder, w)?;
    let first = builder.weight("time_mix_first.weight")?;
    let state = builder.state(sizes.state());
    let made = builder.op(Op::Wkv(Wkv::V6 { r, w, k, v, first, head_len, state }));
    let made = builder.norm_parts(made, "time_mix_ln", head_norm(), sizes.heads());
    let gated = builder.op(Op::Multiply { a: made, b: g });
    builder.product(gated, "time_mix_output")
}

/// What decays, keys, values, receptances and gates are made of in RWKV 6: a row mixed with the one before.
pub(super) fn mixed_by_tokens(
    builder: &mut Builder<'_>,
    x: ValueId,
    width: u32,
) -> Result<[ValueId; 5], Finding> {
    let before = shifted(builder, x, width);
    let apart = subtracted(builder, before, x);
    let mixed = mixed_before(builder, x, before, "time_mix_lerp_x")?;
    let low = low_rank(builder, mixed, "time_mix_w1", Some(Function::Tanh))?;
    let weight = builder.weight("time_mix_w2.weight")?;
    let shares = builder.op(Op::HeadProduct { x: low, weight });
    let shares = match builder.find("time_mix_lerp_fused.weight") {
        Some(weight) => {
            let shares = builder.op(Op::AddWeight { x: shares, weight });
            builder.split(shares, [width; 5])
        }
        None => {
            let mut shares = builder.split(shares, [width; 5]);
            for (share, letter) in shares.iter_mut().zip(["w", "k", "v", "r", "g"]) {
                let weight = builder.weight(&format!("time_mix_lerp_{letter}.weight"))?;
                *share = builder.op(Op::AddWeight { x: *share, weight });
            }
            shares
        }
    };
    Ok(shares.map(|share| {
        let part = builder.op(Op::Multiply { a: share, b: apart });
        builder.add(x, part)
    }))
}

/// The decays of RWKV 6.
pub(super) fn decay6(builder: &mut Builder<'_>, w: ValueId) -> Result<ValueId, Finding> {
    let w = low_rank(builder, w, "time_mix_decay_w1", Some(Function::Tanh))?;
    let w = low_rank(builder, w, "time_mix_decay_w2", None)?;
    plus(builder, w, "time_mix_decay.weight", Function::ExpNegExp)
}

pub(super) fn time_mix7(
    builder: &mut Builder<'_>,
    x: ValueId,
    sizes: Sizes,
    first: &mut Option<ValueId>,
) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let before = shifted(builder, x, width);
    let apart = subtracted(builder, before, x);
    let weight = builder.weight("time_mix_lerp_fused.weight")?;
    let shares = builder.op(Op::MultiplyWeight { x: apart, weight });
    let mut start = 0;
    let mut part = |builder: &mut Builder<'_>| {
        let part = builder.op(Op::Slice { x: shares, groups: 1, start, len: width });
        start = start.saturating_add(width);
        builder.add(x, part)
    };
    let [r, w, k, v, a] = [(); 5].map(|()| part(builder));
    let r = builder.product(r, "time_mix_receptance")?;
    let w = low_rank(builder, w, "time_mix_w1", Some(Function::Tanh))?;
    let w = low_rank(builder, w, "time_mix_w2", None)?;
    let w = plus(builder, w, "time_mix_w0.weight", Function::Sigmoid)?;
    // exp(-1/2), rounded as its authors do.
    let w = builder.scale(w, -0.606_531);
    let w = builder.op(Op::Activate { x: w, function: Function::Exp });
    let k = builder.product(k, "time_mix_key")?;
    let value = builder.product(v, "time_mix_value")?;
    let value = match *first {
        None => *first.insert(value),
        Some(first) => {
            let share = low_rank(builder, v, "time_mix_v1", None)?;
            let share = low_rank(builder, share, "time_mix_v2", None)?;
            let share = plus(builder, share, "time_mix_v0.weight", Function::Sigmoid)?;
            let apart = subtracted(builder, first, value);
            let part = builder.op(Op::Multiply { a: apart, b: share });
            builder.add(value, part)
        }
    };
    let a = low_rank(builder, a, "time_mix_a1", None)?;
    let a = low_rank(builder, a, "time_mix_a2", None)?;
    let a = plus(builder, a, "time_mix_a0.weight", Function::Sigmoid)?;
    // What is taken out of the state, and what is put there instead.
    let weight = builder.weight("time_mix_k_k.weight")?;
    let removed = builder.op(Op::MultiplyWeight { x: k, weight });
    let removed = builder.op(Op::Norm {
        x: removed,
        kind: NormKind::Length,
        epsilon: 1e-12,
        groups: sizes.heads(),
        weight: None,
        bias: None,
    });
    let put = builder.op(Op::Multiply { a: removed, b: a });
    let removed = builder.scale(removed, -1.0);
    let weight = builder.weight("time_mix_k_a.weight")?;
    let share = builder.op(Op::MultiplyWeight { x: k, weight });
    let changed = builder.op(Op::Multiply { a, b: share });
    let changed = subtracted(builder, changed, share);
    let k = builder.add(k, changed);
    let state = builder.state(sizes.state());
    let made =
        builder.op(Op::Wkv(Wkv::V7 { r, w, k, v: value, a: removed, b: put, head_len, state }));
    let is_normed = builder.has_norm("time_mix_ln");
    let made = match is_normed {
        true => builder.norm_parts(made, "time_mix_ln", head_norm(), sizes.heads()),
        false => made,
    };
    // What the token says of itself.
    let weight = builder.weight("time_mix_r_k.weight")?;
    let bonus = builder.op(Op::Multiply { a: k, b: r });
    let bonus = builder.op(Op::MultiplyWeight { x: bonus, weight });
    let bonus = builder.op(Op::Sum { x: bonus, groups: sizes.heads() });
    let bonus = builder.op(Op::Multiply { a: value, b: bonus });
    let mut made = builder.add(made, bonus);
    if builder.has("time_mix_g1.weight") {
        let g = part(builder);
        let g = low_rank(builder, g, "time_mix_g1", Some(Function::Sigmoid))?;
        let g = low_rank(builder, g, "time_mix_g2", None)?;
        made = builder.op(Op::Multiply { a: made, b: g });
    }
    builder.product(made, "time_mix_output")
}

fn head_norm() -> Norm {
    Norm { kind: NormKind::Variance, epsilon: HEAD_EPSILON }
}

/// A product, and a function of it.
pub(super) fn low_rank(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    function: Option<Function>,
) -> Result<ValueId, Finding> {
    let x = builder.product(x, name)?;
    Ok(function.map_or(x, |function| builder.op(Op::Activate { x, function })))
}

/// A function of the sum with a weight.
fn plus(
    builder: &mut Builder<'_>,
    x: ValueId,
    weight: &str,
    function: Function,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(weight)?;
    let x = builder.op(Op::AddWeight { x, weight });
    Ok(builder.op(Op::Activate { x, function }))
}

/// `a - b`.
pub(super) fn subtracted(builder: &mut Builder<'_>, a: ValueId, b: ValueId) -> ValueId {
    let negative = builder.scale(b, -1.0);
    builder.add(a, negative)
}

/// A row mixed with the one before by a weight of this name.
type Lerp = fn(&mut Builder<'_>, ValueId, ValueId, &str) -> Result<ValueId, Finding>;

/// The weight is the share of the current row.
fn mixed_current(
    builder: &mut Builder<'_>,
    x: ValueId,
    before: ValueId,
    name: &str,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(&format!("{name}.weight"))?;
    Ok(builder.op(Op::Mix { a: x, b: before, weight }))
}

/// The weight is the share of the row before.
fn mixed_before(
    builder: &mut Builder<'_>,
    x: ValueId,
    before: ValueId,
    name: &str,
) -> Result<ValueId, Finding> {
    mixed_current(builder, before, x, name)
}

/// The feed-forward network, with a gate in versions that have one.
fn channel_mix(
    builder: &mut Builder<'_>,
    x: ValueId,
    width: u32,
    lerp: Lerp,
) -> Result<ValueId, Finding> {
    let before = shifted(builder, x, width);
    let mixed = lerp(builder, x, before, "channel_mix_lerp_k")?;
    let key = builder.product(mixed, "channel_mix_key")?;
    let key = builder.op(Op::Activate { x: key, function: Function::ReluSquared });
    let value = builder.product(key, "channel_mix_value")?;
    if !builder.has("channel_mix_receptance.weight") {
        return Ok(value);
    }
    let mixed = lerp(builder, x, before, "channel_mix_lerp_r")?;
    let gate = builder.product(mixed, "channel_mix_receptance")?;
    let gate = builder.op(Op::Activate { x: gate, function: Function::Sigmoid });
    Ok(builder.op(Op::Multiply { a: value, b: gate }))
}

fn shifted(builder: &mut Builder<'_>, x: ValueId, width: u32) -> ValueId {
    let state = builder.state(State::Rows { width, rows: 1 });
    builder.op(Op::Shift { x, state })
}
