//! Qwen 2 with its attention replaced by RWKV 6 or 7.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Decay, LinearAttention, Mul, ValueId};

use crate::blocks::{Decoder, feed_forward, finish, layers, repeated};
use crate::graph::{Builder, Norm};
use crate::rwkv6::graph::{Sizes, decay6, low_rank, mixed_by_tokens, subtracted};

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    qwen(builder, time_mix6)
}

/// Qwen 2 with what stands between the norm and the sum.
pub(crate) fn qwen<'m>(
    builder: &mut Builder<'m>,
    mut mixer: impl FnMut(&mut Builder<'m>, ValueId, Sizes) -> Result<ValueId, Finding>,
) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let sizes = Sizes::of(builder)?;
    let mut x = builder.embedding()?;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = mixer(builder, normed, sizes)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "ffn_norm", norm);
        let fed = feed_forward(builder, normed, ActivationFunction::Silu, "")?;
        x = builder.add(x, fed);
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}

/// RWKV 6 without a bonus for the current token and without a norm of heads; heads share keys and values, and
/// the more of its state a head forgets, the more of a key it takes.
fn time_mix6(builder: &mut Builder<'_>, x: ValueId, sizes: Sizes) -> Result<ValueId, Finding> {
    let heads = sizes.heads();
    let [w, k, v, r, g] = mixed_by_tokens(builder, x, sizes.width)?;
    let r = builder.product(r, "time_mix_receptance")?;
    let query = builder.scale(r, 1.0 / (sizes.head_len as f32).sqrt());
    let made = builder.extent("time_mix_key.weight", 1) / u64::from(sizes.head_len.max(1));
    let shared = u32::try_from(made).unwrap_or(0);
    let [key, value] = [(k, "time_mix_key"), (v, "time_mix_value")].map(|(x, name)| {
        let made = builder.product(x, name)?;
        Ok(repeated(builder, made, shared, heads.checked_div(shared).unwrap_or(0)))
    });
    let w = decay6(builder, w)?;
    let key = key?;
    let kept = builder.op(Mul { a: key, b: w });
    let key = subtracted(builder, key, kept);
    let state = builder.state(sizes.state());
    let (decay, value) = (Decay::Value(w), value?);
    let attention = LinearAttention { query, key, value, heads, decay, beta: None, state };
    let made = builder.op(attention);
    let gate = low_rank(builder, g, "time_mix_gate", Some(ActivationFunction::Sigmoid))?;
    let gated = builder.op(Mul { a: made, b: gate });
    builder.product(gated, "time_mix_output")
}
