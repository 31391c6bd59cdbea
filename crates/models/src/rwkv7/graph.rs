//! Computation graph of RWKV 7.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Mul, MulWeight, NormKind, Slice, Sum, ValueId, Wkv,
};

use crate::blocks::{Decoder, finish};
use crate::graph::Builder;
use crate::rwkv::graph::{channel_mix, norm, token_shift};
use crate::rwkv6::graph::{
    Sizes, bias_activation, head_norm, lerp_previous, matmul_activation, subtract,
};
use crate::schema::key;

/// Builds RWKV 7: time mixing by a generalized delta rule, with the values of the first layer as value residual.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = norm(builder)?;
    let sizes = Sizes::of(builder)?;
    let mut first = None;
    let mut x = builder.embedding()?;
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = time_mix(builder, normed, sizes, &mut first)?;
        x = builder.add(x, mixed);
        let normed = builder.norm(x, "attn_norm_2", norm);
        let mixed = channel_mix(builder, normed, sizes.width, lerp_previous)?;
        x = builder.add(x, mixed);
    }
    builder.set_layer("", None);
    finish(builder, x, &Decoder::without_rope(norm))
}

/// Time mixing of RWKV 7. `first` holds the values of the first layer.
pub(crate) fn time_mix(
    builder: &mut Builder<'_>,
    x: ValueId,
    sizes: Sizes,
    first: &mut Option<ValueId>,
) -> Result<ValueId, Finding> {
    let Sizes { width, head_len } = sizes;
    let previous = token_shift(builder, x, width);
    let difference = subtract(builder, previous, x);
    let weight = builder.weight("time_mix_lerp_fused.weight")?;
    let shifts = builder.op(MulWeight { x: difference, weight });
    let mut start = 0;
    let mut part = |builder: &mut Builder<'_>| {
        let part = builder.op(Slice { x: shifts, groups: 1, start, len: width });
        start = start.saturating_add(width);
        builder.add(x, part)
    };
    let [r, w, k, v, a] = [(); 5].map(|()| part(builder));
    let r = builder.matmul(r, "time_mix_receptance")?;
    let w = matmul_activation(builder, w, "time_mix_w1", Some(ActivationFunction::Tanh))?;
    let w = matmul_activation(builder, w, "time_mix_w2", None)?;
    let w = bias_activation(builder, w, "time_mix_w0.weight", ActivationFunction::Sigmoid)?;
    // -exp(-1/2), rounded as in the authors' implementation.
    let w = builder.scale(w, -0.606_531);
    let w = builder.op(Activation { x: w, function: ActivationFunction::Exp });
    let k = builder.matmul(k, "time_mix_key")?;
    let value = builder.matmul(v, "time_mix_value")?;
    let value = match *first {
        None => *first.insert(value),
        Some(first) => {
            let mix = matmul_activation(builder, v, "time_mix_v1", None)?;
            let mix = matmul_activation(builder, mix, "time_mix_v2", None)?;
            let mix =
                bias_activation(builder, mix, "time_mix_v0.weight", ActivationFunction::Sigmoid)?;
            let difference = subtract(builder, first, value);
            let part = builder.op(Mul { a: difference, b: mix });
            builder.add(value, part)
        }
    };
    let a = matmul_activation(builder, a, "time_mix_a1", None)?;
    let a = matmul_activation(builder, a, "time_mix_a2", None)?;
    let a = bias_activation(builder, a, "time_mix_a0.weight", ActivationFunction::Sigmoid)?;
    // Removal and replacement keys of the delta rule.
    let weight = builder.weight("time_mix_k_k.weight")?;
    let removal = builder.op(MulWeight { x: k, weight });
    let removal = builder.op(NormKind::L2.op(removal, 1e-12, sizes.heads(), None, None));
    let replacement = builder.op(Mul { a: removal, b: a });
    let removal = builder.scale(removal, -1.0);
    let weight = builder.weight("time_mix_k_a.weight")?;
    let scaled = builder.op(MulWeight { x: k, weight });
    let change = builder.op(Mul { a, b: scaled });
    let change = subtract(builder, change, scaled);
    let k = builder.add(k, change);
    let state = builder.state(sizes.state());
    let output =
        builder.op(Wkv::V7 { r, w, k, v: value, a: removal, b: replacement, head_len, state });
    let is_normed = builder.has_norm("time_mix_ln");
    let output = match is_normed {
        true => builder.group_norm(output, "time_mix_ln", head_norm(), sizes.heads()),
        false => output,
    };
    // Bonus of the current token.
    let weight = builder.weight("time_mix_r_k.weight")?;
    let bonus = builder.op(Mul { a: k, b: r });
    let bonus = builder.op(MulWeight { x: bonus, weight });
    let bonus = builder.op(Sum { x: bonus, groups: sizes.heads() });
    let bonus = builder.op(Mul { a: value, b: bonus });
    let mut output = builder.add(output, bonus);
    if builder.has("time_mix_g1.weight") {
        let g = part(builder);
        let g = matmul_activation(builder, g, "time_mix_g1", Some(ActivationFunction::Sigmoid))?;
        let g = matmul_activation(builder, g, "time_mix_g2", None)?;
        output = builder.op(Mul { a: output, b: g });
    }
    builder.matmul(output, "time_mix_output")
}
