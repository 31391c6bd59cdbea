//! Qwen 3 Next and Qwen 3.5: attention is linear in most layers, by the gated delta rule; in the others its
//! result is gated.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Bias, Decay, GatedActivation, GluFunction, LinearAttention,
    MulWeight, RopeLayout, Slice, State, ValueId,
};

use crate::blocks::{Attend, Decoder, attended, decoder, repeated, short_convolution, unit_heads};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        network_norm: "post_attention_norm",
        attention: mixer,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}

fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    if builder.has("attn_q.weight") {
        full(builder, x, &attend)
    } else {
        linear(builder, x, &attend, ActivationFunction::Silu)
    }
}

/// Attention to all, with a gate behind each head of the queries.
pub(crate) fn full(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let (groups, len) = (attend.heads.heads, attend.heads.key_len);
    let both = builder.product(x, "attn_q")?;
    let query = builder.op(Slice { x: both, groups, start: 0, len });
    let gate = builder.op(Slice { x: both, groups, start: len, len });
    let key = builder.product(x, "attn_k")?;
    let value = builder.product(x, "attn_v")?;
    let up = attended(builder, [query, key, value], attend);
    let function = GluFunction::Plain(ActivationFunction::Sigmoid);
    let gated = builder.op(GatedActivation { gate, up, function });
    builder.product(gated, "attn_output")
}

/// The gated delta rule, with a decay for each head. Heads of values share heads of keys. What comes out has a
/// gate through `function`.
pub(crate) fn linear(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
    function: ActivationFunction,
) -> Result<ValueId, Finding> {
    let key_len = builder.size(key::SSM_STATE_SIZE)?;
    let key_heads = builder.size(key::SSM_GROUP_COUNT)?;
    let heads = builder.size(key::SSM_TIME_STEP_RANK)?;
    let inner = builder.size(key::SSM_INNER_SIZE)?;
    let keys = key_heads.saturating_mul(key_len);
    let channels = keys.saturating_mul(2).saturating_add(inner);
    let made = builder.product(x, "attn_qkv")?;
    let made = short_convolution(builder, made, "ssm_conv1d", channels)?;
    let [query, key, value] = builder.split(made, [keys, keys, inner]);
    let times = heads.checked_div(key_heads).unwrap_or(0);
    let (alpha, beta, groups) = if builder.has("ssm_ba.weight") {
        let both = builder.product(x, "ssm_ba")?;
        let [beta, alpha] = [0, times]
            .map(|start| builder.op(Slice { x: both, groups: key_heads, start, len: times }));
        (alpha, beta, key_heads)
    } else {
        // In files of this form the heads of values with one head of keys do not stand side by side.
        (builder.product(x, "ssm_alpha")?, builder.product(x, "ssm_beta")?, 1)
    };
    let [query, key] = [(query, 1.0 / (key_len as f32).sqrt()), (key, 1.0)].map(|(x, length)| {
        let x = unit_heads(builder, x, key_heads, key_len, length);
        repeated(builder, x, groups, times)
    });
    let rate = Some(builder.op(Activation { x: beta, function: ActivationFunction::Sigmoid }));
    let weight = builder.weight("ssm_dt.bias")?;
    let step = builder.op(Bias { x: alpha, weight });
    let step = builder.op(Activation { x: step, function: ActivationFunction::Softplus });
    let weight = builder.weight("ssm_a")?;
    let decay = builder.op(MulWeight { x: step, weight });
    let decay =
        Decay::Value(builder.op(Activation { x: decay, function: ActivationFunction::Exp }));
    let state = builder.state(State::Recurrent { len: inner.saturating_mul(key_len) });
    let attention = LinearAttention { query, key, value, heads, decay, beta: rate, state };
    let up = builder.op(attention);
    let up = builder.norm_parts(up, "ssm_norm", attend.norm, heads);
    let gate = builder.product(x, "attn_gate")?;
    let gated = builder.op(GatedActivation { gate, up, function: function.into() });
    builder.product(gated, "ssm_out")
}
