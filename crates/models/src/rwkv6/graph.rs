//! RWKV 4, 6 and 7.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, BatchedMatmul, Bias, Mul, NormKind, State, ValueId, Wkv,
};

use crate::blocks::{Decoder, finish};
use crate::graph::{Builder, Norm};
use crate::rwkv::graph::{channel_mix, mixed_current, norm, shifted};
use crate::schema::key;

/// RWKV 6: how much of the token before is mixed in depends on the tokens. The mixes hold its share.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let every = builder.hyper.u64(key::RESCALE_EVERY_N_LAYERS)?;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64(key::BLOCK_COUNT)? {
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

/// Epsilon of the norm of heads, the same in all models.
const HEAD_EPSILON: f32 = 64e-5;

/// The extents of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub width: u32,
    pub head_len: u32,
}

impl Sizes {
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        let (width, head_len) =
            (builder.size(key::EMBEDDING_LENGTH)?, builder.size(key::WKV_HEAD_SIZE)?);
        Ok(Self { width, head_len })
    }

    pub fn heads(self) -> u32 {
        self.width.checked_div(self.head_len).unwrap_or(0)
    }

    pub fn state(self) -> State {
        State::Recurrent { len: self.width.saturating_mul(self.head_len) }
    }
}

fn time_mix6(builder: &mut Builder<'_>, x: ValueId, sizes: Sizes) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let [w, k, v, r, g] = mixed_by_tokens(builder, x, width)?;
    let r = builder.product(r, "time_mix_receptance")?;
    let k = builder.product(k, "time_mix_key")?;
    let v = builder.product(v, "time_mix_value")?;
    let g = low_rank(builder, g, "time_mix_gate", Some(ActivationFunction::Silu))?;
    let w = decay6(builder, w)?;
    let first = builder.weight("time_mix_first.weight")?;
    let state = builder.state(sizes.state());
    let made = builder.op(Wkv::V6 { r, w, k, v, bonus: first, head_len, state });
    let made = builder.norm_parts(made, "time_mix_ln", head_norm(), sizes.heads());
    let gated = builder.op(Mul { a: made, b: g });
    builder.product(gated, "time_mix_output")
}

/// What decays, keys, values, receptances and gates are made of in RWKV 6: a row mixed with the one before.
pub(crate) fn mixed_by_tokens(
    builder: &mut Builder<'_>,
    x: ValueId,
    width: u32,
) -> Result<[ValueId; 5], Finding> {
    let before = shifted(builder, x, width);
    let apart = subtracted(builder, before, x);
    let mixed = mixed_before(builder, x, before, "time_mix_lerp_x")?;
    let low = low_rank(builder, mixed, "time_mix_w1", Some(ActivationFunction::Tanh))?;
    let weight = builder.weight("time_mix_w2.weight")?;
    let shares = builder.op(BatchedMatmul { x: low, weight });
    let shares = match builder.find("time_mix_lerp_fused.weight") {
        Some(weight) => {
            let shares = builder.op(Bias { x: shares, weight });
            builder.split(shares, [width; 5])
        }
        None => {
            let mut shares = builder.split(shares, [width; 5]);
            for (share, letter) in shares.iter_mut().zip(["w", "k", "v", "r", "g"]) {
                let weight = builder.weight(&format!("time_mix_lerp_{letter}.weight"))?;
                *share = builder.op(Bias { x: *share, weight });
            }
            shares
        }
    };
    Ok(shares.map(|share| {
        let part = builder.op(Mul { a: share, b: apart });
        builder.add(x, part)
    }))
}

/// The decays of RWKV 6.
pub(crate) fn decay6(builder: &mut Builder<'_>, w: ValueId) -> Result<ValueId, Finding> {
    let w = low_rank(builder, w, "time_mix_decay_w1", Some(ActivationFunction::Tanh))?;
    let w = low_rank(builder, w, "time_mix_decay_w2", None)?;
    plus(builder, w, "time_mix_decay.weight", ActivationFunction::ExpNegExp)
}

pub(crate) fn head_norm() -> Norm {
    Norm { kind: NormKind::Layer, epsilon: HEAD_EPSILON }
}

/// A product, and a function of it.
pub(crate) fn low_rank(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    function: Option<ActivationFunction>,
) -> Result<ValueId, Finding> {
    let x = builder.product(x, name)?;
    Ok(function.map_or(x, |function| builder.op(Activation { x, function })))
}

/// A function of the sum with a weight.
pub(crate) fn plus(
    builder: &mut Builder<'_>,
    x: ValueId,
    weight: &str,
    function: ActivationFunction,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(weight)?;
    let x = builder.op(Bias { x, weight });
    Ok(builder.op(Activation { x, function }))
}

/// `a - b`.
pub(crate) fn subtracted(builder: &mut Builder<'_>, a: ValueId, b: ValueId) -> ValueId {
    let negative = builder.scale(b, -1.0);
    builder.add(a, negative)
}

/// The weight is the share of the row before.
pub(crate) fn mixed_before(
    builder: &mut Builder<'_>,
    x: ValueId,
    before: ValueId,
    name: &str,
) -> Result<ValueId, Finding> {
    mixed_current(builder, before, x, name)
}
