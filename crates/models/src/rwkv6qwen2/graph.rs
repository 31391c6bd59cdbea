//! Computation graph of QRWKV6, and the decoder of Qwen2 with another token mixer.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Decay, LinearAttention, Mul, ValueId};

use crate::blocks::{Decoder, feed_forward, finish, layers, repeated};
use crate::graph::{Builder, Norm};
use crate::rwkv6::graph::{Sizes, data_dependent_lerp, decay, matmul_activation, subtract};

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    qwen2_with_mixer(builder, time_mix)
}

/// Builds a Qwen2 decoder with `mixer` instead of attention.
pub(crate) fn qwen2_with_mixer<'m>(
    builder: &mut Builder<'m>,
    mut mixer: impl FnMut(&mut Builder<'m>, ValueId, Sizes) -> Result<ValueId, Finding>,
) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let sizes = Sizes::of(builder)?;
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = mixer(builder, normed, sizes)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "ffn_norm", norm);
        let fed = feed_forward(builder, normed, ActivationFunction::Silu, "")?;
        x = builder.add(x, fed);
    }
    builder.set_layer("", None);
    finish(builder, x, &Decoder::without_rope(norm))
}

/// Time mixing of RWKV 6 without bonus and group norm, as gated linear attention. Heads share KV heads, and keys are
/// multiplied by `1 - decay`.
fn time_mix(builder: &mut Builder<'_>, x: ValueId, sizes: Sizes) -> Result<ValueId, Finding> {
    let heads = sizes.heads();
    let [w, k, v, r, g] = data_dependent_lerp(builder, x, sizes.width)?;
    let r = builder.matmul(r, "time_mix_receptance")?;
    let query = builder.scale(r, 1.0 / (sizes.head_len as f32).sqrt());
    let kv_heads = builder.extent("time_mix_key.weight", 1) / u64::from(sizes.head_len.max(1));
    let kv_heads = u32::try_from(kv_heads).unwrap_or(0);
    let [key, value] = [(k, "time_mix_key"), (v, "time_mix_value")].map(|(x, name)| {
        let x = builder.matmul(x, name)?;
        Ok(repeated(builder, x, kv_heads, heads.checked_div(kv_heads).unwrap_or(0)))
    });
    let w = decay(builder, w)?;
    let key = key?;
    let decayed = builder.op(Mul { a: key, b: w });
    let key = subtract(builder, key, decayed);
    let state = builder.state(sizes.state());
    let (decay, value) = (Decay::Value(w), value?);
    let attention = LinearAttention { query, key, value, heads, decay, beta: None, state };
    let output = builder.op(attention);
    let gate = matmul_activation(builder, g, "time_mix_gate", Some(ActivationFunction::Sigmoid))?;
    let gated = builder.op(Mul { a: output, b: gate });
    builder.matmul(gated, "time_mix_output")
}
