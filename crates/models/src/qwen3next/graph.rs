//! Computation graph of Qwen3-Next and Qwen3.5: gated delta rule in most layers, gated full
//! attention in the others.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Bias, Decay, GatedActivation, GluFunction, LinearAttention,
    MulWeight, RopeLayout, Slice, State, ValueId,
};

use crate::blocks::{
    self, Attend, Decoder, attend_qkv, l2_normed_heads, repeated, short_convolution,
};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        ffn_norm: "post_attention_norm",
        attention: mixer,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}

fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    if builder.has("attn_q.weight") {
        full_attention(builder, x, &attend)
    } else {
        linear_attention(builder, x, &attend, ActivationFunction::Silu)
    }
}

/// Full attention; the query projection interleaves the queries and output gates of each head.
pub(crate) fn full_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let (groups, len) = (attend.heads.heads, attend.heads.key_len);
    let query_and_gate = builder.matmul(x, "attn_q")?;
    let query = builder.op(Slice { x: query_and_gate, groups, start: 0, len });
    let gate = builder.op(Slice { x: query_and_gate, groups, start: len, len });
    let key = builder.matmul(x, "attn_k")?;
    let value = builder.matmul(x, "attn_v")?;
    let up = attend_qkv(builder, [query, key, value], attend);
    let function = GluFunction::Plain(ActivationFunction::Sigmoid);
    let gated = builder.op(GatedActivation { gate, up, function });
    builder.matmul(gated, "attn_output")
}

/// Linear attention by the gated delta rule, with one decay for each head. Value heads share key heads. The output is
/// gated by `function` of `attn_gate`.
pub(crate) fn linear_attention(
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
    let qkv = builder.matmul(x, "attn_qkv")?;
    let qkv = short_convolution(builder, qkv, "ssm_conv1d", channels)?;
    let [query, key, value] = builder.split(qkv, [keys, keys, inner]);
    let values_per_key = heads.checked_div(key_heads).unwrap_or(0);
    let (alpha, beta, groups) = if builder.has("ssm_ba.weight") {
        let beta_alpha = builder.matmul(x, "ssm_ba")?;
        let [beta, alpha] = [0, values_per_key].map(|start| {
            builder.op(Slice { x: beta_alpha, groups: key_heads, start, len: values_per_key })
        });
        (alpha, beta, key_heads)
    } else {
        // In these files the value heads of a key head are not adjacent.
        (builder.matmul(x, "ssm_alpha")?, builder.matmul(x, "ssm_beta")?, 1)
    };
    let [query, key] = [(query, 1.0 / (key_len as f32).sqrt()), (key, 1.0)].map(|(x, length)| {
        let x = l2_normed_heads(builder, x, key_heads, key_len, length);
        repeated(builder, x, groups, values_per_key)
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
    let up = builder.group_norm(up, "ssm_norm", attend.norm, heads);
    let gate = builder.matmul(x, "attn_gate")?;
    let gated = builder.op(GatedActivation { gate, up, function: function.into() });
    builder.matmul(gated, "ssm_out")
}
