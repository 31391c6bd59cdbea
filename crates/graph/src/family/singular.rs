//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one part.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{
    Attend, Decoder, Heads, attend, attend_to, attention, attention_output, decoder, embedding,
    finish, layer, layers, network, queries_keys_values, turned,
};
use crate::op::{Function, NormKind, Op, PositionBias};
use crate::raw::ValueId;
use crate::rotation::Pairs;

/// The activation of Apertus is xIELU (arXiv 2411.13010), with numbers of its own in each layer.
pub(super) fn apertus(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        network: |builder, x, layer, _| {
            let up = builder.product(x, "ffn_up")?;
            let made = xielu(builder, up, layer)?;
            builder.product(made, "ffn_down")
        },
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    decoder(builder, &family)
}

/// `p x^2 + b x` above 0, `n (exp(x) - 1 - x) + b x` below.
fn xielu(builder: &mut Builder<'_>, x: ValueId, layer: u64) -> Result<ValueId, Finding> {
    let number = |name: &str| builder.bare_number_in(&format!("xielu.{name}"), layer);
    let softplus = |x: f32| if x > 20.0 { x } else { x.exp().ln_1p() };
    let beta = number("beta")?;
    let positive = softplus(number("alpha_p")?);
    let negative = beta + softplus(number("alpha_n")?);
    let square = builder.op(Op::Activate { x, function: Function::ReluSquared });
    let square = builder.scale(square, positive);
    let elu = builder.op(Op::Activate { x, function: Function::Elu });
    let elu = builder.scale(elu, negative);
    let linear = builder.scale(x, beta - negative);
    let sum = builder.add(square, elu);
    Ok(builder.add(sum, linear))
}

/// Positions by ALiBi.
pub(super) fn refact(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::mean_square(builder)?;
    let family = Decoder {
        function: Function::Silu,
        bias: PositionBias::Slopes { max: 8.0 },
        ..Decoder::plain(norm)
    };
    decoder(builder, &family)
}

/// As GPT-2 with gates and ALiBi; scores are divided by the length of a head.
pub(super) fn jais(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    let len = Heads::of(builder, 0)?.key_len.max(1) as f32;
    let family = Decoder {
        function: Function::Silu,
        attention_scale: Some(1.0 / len),
        ..Decoder::plain(norm)
    };
    decoder(builder, &family)
}

/// Meta's Chameleon, which may have its norms behind the parts of a layer. Tokens of images are never
/// said.
pub(super) fn chameleon(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.norm = Norm { kind: NormKind::Variance, epsilon: HEAD_EPSILON };
            attention(builder, x, &attend)
        },
        silent: Some(IMAGE_TOKENS),
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    if builder.hyper.stated("swin_norm").is_some() && builder.hyper.bool("swin_norm")? {
        family.layer = norms_behind;
    }
    decoder(builder, &family)
}

/// Of the norms of heads, which no key tells.
const HEAD_EPSILON: f32 = 1e-5;
/// Ids of the tokens of images, in all models.
const IMAGE_TOKENS: (u32, u32) = (4, 8196);

fn norms_behind(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let attend = attend(builder, layer, decoder)?;
    let attended = (decoder.attention)(builder, x, layer, attend)?;
    let attended = builder.norm(attended, "attn_norm", decoder.norm);
    let x = builder.add(x, attended);
    let fed = network(builder, x, layer, decoder)?;
    let fed = builder.norm(fed, "ffn_norm", decoder.norm);
    Ok(builder.add(x, fed))
}

/// Norms have no weights, each head of queries has a gain, and each layer adds the embedding again.
pub(super) fn talkie(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: talkie_attention,
        norms_embedding: true,
        weightless_norms: true,
        logit_scale: builder.factor("logit_scale")?,
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    let embedded = embedding(builder, &family)?;
    let mut x = embedded;
    for number in 0..layers(builder)? {
        builder.at("blk.", Some(number));
        x = layer(builder, x, number, &family)?;
        let weight = builder.weight("layer_output_scale.weight")?;
        let again = builder.op(Op::MultiplyWeight { x: embedded, weight });
        x = builder.add(x, again);
    }
    builder.at("", None);
    finish(builder, x, &family)
}

fn talkie_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    let [query, key, value] = queries_keys_values(builder, x, &attend)?;
    let heads = [attend.heads.heads, attend.heads.heads_kv];
    let [query, key] = [(query, heads[0]), (key, heads[1])].map(|(x, heads)| {
        let x = turned(builder, x, heads, &attend.rotation);
        builder.weightless_norm(x, attend.norm, heads)
    });
    let weight = builder.weight("attn_q_norm.weight")?;
    let query = builder.op(Op::MultiplyWeight { x: query, weight });
    let attended = attend_to(builder, [query, key, value], &attend);
    attention_output(builder, x, attended, &attend)
}

/// The layers are run through several times, with the last norm between.
pub(super) fn nanbeige(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Neighbours)?;
    let stated = builder.hyper.stated("num_loops").is_some();
    let loops = if stated { builder.hyper.u64("num_loops")?.clamp(1, MOST_LOOPS) } else { 1 };
    let skips = builder.hyper.stated("skip_loop_final_norm").is_some()
        && builder.hyper.bool("skip_loop_final_norm")?;
    let mut x = embedding(builder, &family)?;
    for number in 0..loops {
        if number > 0 && !skips {
            x = builder.norm(x, "output_norm", family.norm);
        }
        for number in 0..layers(builder)? {
            builder.at("blk.", Some(number));
            x = layer(builder, x, number, &family)?;
        }
        builder.at("", None);
    }
    finish(builder, x, &family)
}

/// More than any model has.
const MOST_LOOPS: u64 = 64;

/// HRM: a fast and a slow stack of layers are run through in turn; the fast one reads what the slow one
/// said, the slow one what the fast one said at last. Norms have no weights, attention has gates.
pub(super) fn hrm(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let embedding_scale = builder.factor("embedding_scale")?;
    let family = Decoder {
        weightless_norms: true,
        embedding_scale,
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    let per_stack = builder.hyper.u64("hrm.layers_per_stack")?;
    let [slow, fast] = ["hrm.h_cycles", "hrm.l_cycles"].map(|key| builder.hyper.u64(key));
    let (slow, fast) = (slow?.clamp(1, MOST_LOOPS), fast?.clamp(1, MOST_LOOPS));
    let mut high = embedding(builder, &family)?;
    let first = builder.weight("hrm.z_l_init")?;
    let mut low = None;
    for _ in 0..slow {
        for _ in 0..fast {
            let input = match low {
                Some(low) => builder.add(high, low),
                None => builder.op(Op::AddWeight { x: high, weight: first }),
            };
            low = Some(stack(builder, input, 0..per_stack, &family)?);
        }
        let input = low.map_or(high, |low| builder.add(high, low));
        high = stack(builder, input, per_stack..per_stack.saturating_mul(2), &family)?;
    }
    // The last norm stands in the stack.
    let family = Decoder { weightless_norms: false, ..family };
    finish(builder, high, &family)
}

fn stack(
    builder: &mut Builder<'_>,
    mut x: ValueId,
    numbers: std::ops::Range<u64>,
    family: &Decoder,
) -> Result<ValueId, Finding> {
    for number in numbers {
        builder.at("blk.", Some(number));
        x = layer(builder, x, number, family)?;
    }
    builder.at("", None);
    Ok(builder.weightless_norm(x, family.norm, 1))
}
