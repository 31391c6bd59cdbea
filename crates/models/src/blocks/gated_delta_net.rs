//! Kimi Delta Attention (KDA), and parts that other linear attention layers share with it.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Bias, CausalConv1d, Concat, Decay, GatedActivation,
    GluFunction, LinearAttention, MulWeight, NormKind, State, ValueId,
};

use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Epsilon of the L2 norm of queries and keys in flash-linear-attention (`fla`).
const UNIT_EPSILON: f32 = 1e-6;

/// Adds a causal convolution with the kernels `name`, followed by SiLU.
pub(crate) fn short_convolution(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    width: u32,
) -> Result<ValueId, Finding> {
    let kernel = builder.size(key::SSM_CONV_KERNEL)?;
    let state = builder.state(State::RowHistory { width, len: kernel.saturating_sub(1) });
    let weight = builder.weight(&format!("{name}.weight"))?;
    let bias = builder.find(&format!("{name}.bias"));
    let x = builder.op(CausalConv1d { x, weight, bias, dilation: 1, state });
    Ok(builder.op(Activation { x, function: ActivationFunction::Silu }))
}

/// Adds the L2 norm of each head, scaled to this length.
pub(crate) fn l2_normed_heads(
    builder: &mut Builder<'_>,
    x: ValueId,
    heads: u32,
    head_len: u32,
    length: f32,
) -> ValueId {
    let numbers = head_len as f32;
    let normed = builder.op(NormKind::Rms.op(x, UNIT_EPSILON / numbers, heads, None, None));
    builder.scale(normed, length / numbers.sqrt())
}

/// Repeats each of `groups` equal parts of a row `times` times.
pub(crate) fn repeated(builder: &mut Builder<'_>, x: ValueId, groups: u32, times: u32) -> ValueId {
    let join = |a, _| builder.op(Concat { a, b: x, groups, broadcast: false });
    (1..times).fold(x, join)
}

/// Lower bound of the log decay, instead of softplus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecayBound {
    /// Lower bound of the log decay.
    pub least: f32,
    /// Factor of the tensor `ssm_a`: -1 where it stores negative values.
    pub sign: f32,
}

/// Adds Kimi Delta Attention: the gated delta rule with a decay per key channel, and a short convolution of
/// queries, keys and values.
pub(crate) fn kimi_delta_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    heads: u32,
    norm: Norm,
    bound: Option<DecayBound>,
) -> Result<ValueId, Finding> {
    let len = builder.size(key::KDA_HEAD_DIM)?;
    let width = heads.saturating_mul(len);
    let mut parts = [x; 3];
    for (part, letter) in parts.iter_mut().zip(["q", "k", "v"]) {
        let made = builder.matmul(x, &format!("attn_{letter}"))?;
        *part = short_convolution(builder, made, &format!("ssm_conv1d_{letter}"), width)?;
    }
    let [query, key, value] = parts;
    let query = l2_normed_heads(builder, query, heads, len, 1.0 / (len as f32).sqrt());
    let key = l2_normed_heads(builder, key, heads, len, 1.0);
    let decay = decay(builder, x, bound)?;
    let rate = builder.matmul(x, "ssm_beta")?;
    let rate = Some(builder.op(Activation { x: rate, function: ActivationFunction::Sigmoid }));
    let state = builder.state(State::Recurrent { len: width.saturating_mul(len) });
    let y = builder.op(LinearAttention {
        query,
        key,
        value,
        heads,
        decay: Decay::Value(decay),
        beta: rate,
        state,
    });
    let y = builder.group_norm(y, "ssm_norm", norm, heads);
    let gate = if builder.has("ssm_g.weight") {
        builder.matmul(x, "ssm_g")?
    } else {
        low_rank(builder, x, "ssm_g")?
    };
    let function = GluFunction::Plain(ActivationFunction::Sigmoid);
    let y = builder.op(GatedActivation { gate, up: y, function });
    builder.matmul(y, "attn_output")
}

/// Adds the log decay per key channel.
fn decay(
    builder: &mut Builder<'_>,
    x: ValueId,
    bound: Option<DecayBound>,
) -> Result<ValueId, Finding> {
    let made = low_rank(builder, x, "ssm_f")?;
    let weight = builder.weight("ssm_dt.bias")?;
    let made = builder.op(Bias { x: made, weight });
    let weight = builder.weight("ssm_a")?;
    let logarithm = match bound {
        None => {
            let made = builder.op(Activation { x: made, function: ActivationFunction::Softplus });
            builder.op(MulWeight { x: made, weight })
        }
        Some(DecayBound { least, sign }) => {
            let made = builder.op(MulWeight { x: made, weight });
            let made = builder.scale(made, sign);
            let made = builder.op(Activation { x: made, function: ActivationFunction::Sigmoid });
            builder.scale(made, least)
        }
    };
    Ok(builder.op(Activation { x: logarithm, function: ActivationFunction::Exp }))
}

/// Adds the low-rank projection by `name_a`, then `name_b` if the layer has it.
fn low_rank(builder: &mut Builder<'_>, x: ValueId, name: &str) -> Result<ValueId, Finding> {
    let made = builder.matmul(x, &format!("{name}_a"))?;
    let second = format!("{name}_b");
    if builder.has(&format!("{second}.weight")) { builder.matmul(made, &second) } else { Ok(made) }
}
