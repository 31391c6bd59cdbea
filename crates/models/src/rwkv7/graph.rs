//! RWKV 4, 6 and 7.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Mul, MulWeight, NormKind, Slice, Sum, ValueId, Wkv,
};

use crate::blocks::{Decoder, finish};
use crate::graph::Builder;
use crate::rwkv::graph::{channel_mix, norm, shifted};
use crate::rwkv6::graph::{Sizes, head_norm, low_rank, mixed_before, plus, subtracted};
use crate::schema::key;

/// RWKV 7: states forget what is told by the tokens, and layers look at the values of the first.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let mut first = None;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64(key::BLOCK_COUNT)? {
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

pub(crate) fn time_mix7(
    builder: &mut Builder<'_>,
    x: ValueId,
    sizes: Sizes,
    first: &mut Option<ValueId>,
) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let before = shifted(builder, x, width);
    let apart = subtracted(builder, before, x);
    let weight = builder.weight("time_mix_lerp_fused.weight")?;
    let shares = builder.op(MulWeight { x: apart, weight });
    let mut start = 0;
    let mut part = |builder: &mut Builder<'_>| {
        let part = builder.op(Slice { x: shares, groups: 1, start, len: width });
        start = start.saturating_add(width);
        builder.add(x, part)
    };
    let [r, w, k, v, a] = [(); 5].map(|()| part(builder));
    let r = builder.product(r, "time_mix_receptance")?;
    let w = low_rank(builder, w, "time_mix_w1", Some(ActivationFunction::Tanh))?;
    let w = low_rank(builder, w, "time_mix_w2", None)?;
    let w = plus(builder, w, "time_mix_w0.weight", ActivationFunction::Sigmoid)?;
    // exp(-1/2), rounded as its authors do.
    let w = builder.scale(w, -0.606_531);
    let w = builder.op(Activation { x: w, function: ActivationFunction::Exp });
    let k = builder.product(k, "time_mix_key")?;
    let value = builder.product(v, "time_mix_value")?;
    let value = match *first {
        None => *first.insert(value),
        Some(first) => {
            let share = low_rank(builder, v, "time_mix_v1", None)?;
            let share = low_rank(builder, share, "time_mix_v2", None)?;
            let share = plus(builder, share, "time_mix_v0.weight", ActivationFunction::Sigmoid)?;
            let apart = subtracted(builder, first, value);
            let part = builder.op(Mul { a: apart, b: share });
            builder.add(value, part)
        }
    };
    let a = low_rank(builder, a, "time_mix_a1", None)?;
    let a = low_rank(builder, a, "time_mix_a2", None)?;
    let a = plus(builder, a, "time_mix_a0.weight", ActivationFunction::Sigmoid)?;
    // What is taken out of the state, and what is put there instead.
    let weight = builder.weight("time_mix_k_k.weight")?;
    let removed = builder.op(MulWeight { x: k, weight });
    let removed = builder.op(NormKind::L2.op(removed, 1e-12, sizes.heads(), None, None));
    let put = builder.op(Mul { a: removed, b: a });
    let removed = builder.scale(removed, -1.0);
    let weight = builder.weight("time_mix_k_a.weight")?;
    let share = builder.op(MulWeight { x: k, weight });
    let changed = builder.op(Mul { a, b: share });
    let changed = subtracted(builder, changed, share);
    let k = builder.add(k, changed);
    let state = builder.state(sizes.state());
    let made = builder.op(Wkv::V7 { r, w, k, v: value, a: removed, b: put, head_len, state });
    let is_normed = builder.has_norm("time_mix_ln");
    let made = match is_normed {
        true => builder.norm_parts(made, "time_mix_ln", head_norm(), sizes.heads()),
        false => made,
    };
    // What the token says of itself.
    let weight = builder.weight("time_mix_r_k.weight")?;
    let bonus = builder.op(Mul { a: k, b: r });
    let bonus = builder.op(MulWeight { x: bonus, weight });
    let bonus = builder.op(Sum { x: bonus, groups: sizes.heads() });
    let bonus = builder.op(Mul { a: value, b: bonus });
    let mut made = builder.add(made, bonus);
    if builder.has("time_mix_g1.weight") {
        let g = part(builder);
        let g = low_rank(builder, g, "time_mix_g1", Some(ActivationFunction::Sigmoid))?;
        let g = low_rank(builder, g, "time_mix_g2", None)?;
        made = builder.op(Mul { a: made, b: g });
    }
    builder.product(made, "time_mix_output")
}
