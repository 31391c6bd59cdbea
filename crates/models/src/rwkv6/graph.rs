//! Computation graph of RWKV 6, and parts that RWKV 7 and QRWKV6 share.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, BatchedMatmul, Bias, Mul, NormKind, State, ValueId, Wkv,
};

use crate::blocks::{Decoder, finish};
use crate::graph::{Builder, Norm};
use crate::rwkv::graph::{channel_mix, lerp_current, norm, token_shift};
use crate::schema::key;

/// Builds RWKV 6, whose token shift is data-dependent. Interpolation weights are those of the previous token.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let interval = builder.hparams.u64(key::RESCALE_EVERY_N_LAYERS)?;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix(builder, normed, sizes)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, sizes.width, lerp_previous)?;
        x = builder.add(x, mixed);
        // The converter scales the output matrices of later layers by the same factor.
        if (layer + 1).checked_rem(interval) == Some(0) {
            x = builder.scale(x, 0.5);
        }
    }
    builder.set_layer("", None);
    finish(builder, x, &Decoder::without_rope(norm))
}

/// Epsilon of the group norm of heads, which is the same in all models.
const HEAD_EPSILON: f32 = 64e-5;

/// Sizes of time mixing.
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

/// Time mixing: the WKV recurrence with a data-dependent decay, group norm and gate.
fn time_mix(builder: &mut Builder<'_>, x: ValueId, sizes: Sizes) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let [w, k, v, r, g] = data_dependent_lerp(builder, x, width)?;
    let r = builder.matmul(r, "time_mix_receptance")?;
    let k = builder.matmul(k, "time_mix_key")?;
    let v = builder.matmul(v, "time_mix_value")?;
    let g = matmul_activation(builder, g, "time_mix_gate", Some(ActivationFunction::Silu))?;
    let w = decay(builder, w)?;
    let first = builder.weight("time_mix_first.weight")?;
    let state = builder.state(sizes.state());
    let output = builder.op(Wkv::V6 { r, w, k, v, bonus: first, head_len, state });
    let output = builder.group_norm(output, "time_mix_ln", head_norm(), sizes.heads());
    let gated = builder.op(Mul { a: output, b: g });
    builder.matmul(gated, "time_mix_output")
}

/// Data-dependent token shift (ddlerp) of RWKV 6: the inputs of decay, keys, values, receptance and gate, each
/// `x + (weight + low_rank(x)) * (previous - x)`.
pub(crate) fn data_dependent_lerp(
    builder: &mut Builder<'_>,
    x: ValueId,
    width: u32,
) -> Result<[ValueId; 5], Finding> {
    let previous = token_shift(builder, x, width);
    let difference = subtract(builder, previous, x);
    let mixed = lerp_previous(builder, x, previous, "time_mix_lerp_x")?;
    let low = matmul_activation(builder, mixed, "time_mix_w1", Some(ActivationFunction::Tanh))?;
    let weight = builder.weight("time_mix_w2.weight")?;
    let weights = builder.op(BatchedMatmul { x: low, weight });
    let weights = match builder.find("time_mix_lerp_fused.weight") {
        Some(weight) => {
            let weights = builder.op(Bias { x: weights, weight });
            builder.split(weights, [width; 5])
        }
        None => {
            let mut weights = builder.split(weights, [width; 5]);
            for (part, letter) in weights.iter_mut().zip(["w", "k", "v", "r", "g"]) {
                let weight = builder.weight(&format!("time_mix_lerp_{letter}.weight"))?;
                *part = builder.op(Bias { x: *part, weight });
            }
            weights
        }
    };
    Ok(weights.map(|weight| {
        let part = builder.op(Mul { a: weight, b: difference });
        builder.add(x, part)
    }))
}

/// Decay of RWKV 6: `exp(-exp(bias + low_rank(w)))`.
pub(crate) fn decay(builder: &mut Builder<'_>, w: ValueId) -> Result<ValueId, Finding> {
    let w = matmul_activation(builder, w, "time_mix_decay_w1", Some(ActivationFunction::Tanh))?;
    let w = matmul_activation(builder, w, "time_mix_decay_w2", None)?;
    bias_activation(builder, w, "time_mix_decay.weight", ActivationFunction::ExpNegExp)
}

/// Returns the group norm of heads.
pub(crate) fn head_norm() -> Norm {
    Norm { kind: NormKind::Layer, epsilon: HEAD_EPSILON }
}

/// Matrix product, then an activation, if any.
pub(crate) fn matmul_activation(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    function: Option<ActivationFunction>,
) -> Result<ValueId, Finding> {
    let x = builder.matmul(x, name)?;
    Ok(function.map_or(x, |function| builder.op(Activation { x, function })))
}

/// Bias, then an activation.
pub(crate) fn bias_activation(
    builder: &mut Builder<'_>,
    x: ValueId,
    weight: &str,
    function: ActivationFunction,
) -> Result<ValueId, Finding> {
    let weight = builder.weight(weight)?;
    let x = builder.op(Bias { x, weight });
    Ok(builder.op(Activation { x, function }))
}

/// Returns `a - b`.
pub(crate) fn subtract(builder: &mut Builder<'_>, a: ValueId, b: ValueId) -> ValueId {
    let negative = builder.scale(b, -1.0);
    builder.add(a, negative)
}

/// Returns `weight * previous + (1 - weight) * x`.
pub(crate) fn lerp_previous(
    builder: &mut Builder<'_>,
    x: ValueId,
    previous: ValueId,
    name: &str,
) -> Result<ValueId, Finding> {
    lerp_current(builder, previous, x, name)
}
