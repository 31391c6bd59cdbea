//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{
    Attend, Decoder, Heads, Routing, Windows, attention, decoder, experts, feed_forward, pooled,
    rotation,
};
use crate::op::{Function, GateFunction, Gating, Index, Mask, Op, PositionBias};
use crate::raw::{OutputKind, ValueId};
use crate::rotation::{Pairs, Rotation};

/// What differs between them. Which matrices, biases and norms there are, the tensors say.
struct Encoder {
    /// What is in the middle of feed-forward networks.
    function: Function,
    rotation: Option<Rotation>,
    bias: PositionBias,
}

/// Experts by softmax over all, the weights of those chosen left as they are.
const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalize: false,
    weigh_input: false,
    function: GateFunction::Plain(Function::Gelu),
    soft_cap: None,
};

/// BERT itself, RoBERTa and XLM-RoBERTa: learned positions.
pub(super) fn bert(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let (function, bias) = (Function::Gelu, PositionBias::None);
    encoder(builder, &Encoder { function, rotation: None, bias })
}

/// Nomic's: rotation, and a gate.
pub(super) fn nomic(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rotated(builder, Function::Silu)
}

/// Nomic's with experts, and the third of Jina's: rotation, and no gate.
pub(super) fn plain_rotated(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rotated(builder, Function::Gelu)
}

/// The second of Jina's: ALiBi, and a gate.
pub(super) fn jina2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let bias = PositionBias::Slopes { max: 8.0 };
    encoder(builder, &Encoder { function: Function::Gelu, rotation: None, bias })
}

/// Of three layers all but the first have a window.
pub(super) fn modern(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        windows: Windows::AllButFirst(3),
        ..on_both_sides(Decoder::rotated(builder, Pairs::Halves)?)
    };
    decoder(builder, &family)
}

/// EuroBERT is as llama, but for what its tokens see.
pub(super) fn euro(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = on_both_sides(Decoder::gated(builder, Pairs::Halves)?);
    decoder(builder, &family)
}

pub(super) fn neo(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        output_norm: "enc.output_norm",
        ..on_both_sides(Decoder::gated(builder, Pairs::Neighbours)?)
    };
    decoder(builder, &family)
}

/// Tokens see those behind them too, unless the model says that they do not, and nothing is guessed.
fn on_both_sides(family: Decoder) -> Decoder {
    Decoder {
        attention: |builder, x, _, mut attend| {
            let key = "attention.causal";
            let is_causal = builder.hyper.stated(key).is_some() && builder.hyper.bool(key)?;
            if !is_causal {
                attend.cached = false;
                attend.mask = match attend.mask {
                    Mask::Window(len) => Mask::Around(len),
                    Mask::Causal => Mask::All,
                    mask => mask,
                };
            }
            attention(builder, x, &attend)
        },
        has_logits: false,
        ..family
    }
}

fn rotated(builder: &mut Builder<'_>, function: Function) -> Result<(), Finding> {
    let rotation = rotation(builder, Pairs::Halves)?;
    encoder(builder, &Encoder { function, rotation, bias: PositionBias::None })
}

fn encoder(builder: &mut Builder<'_>, encoder: &Encoder) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    let mut x = builder.embedding()?;
    // All of a text is of the first type.
    for (name, index) in [("token_types", Index::Zero), ("position_embd", Index::Position)] {
        if let Some(table) = builder.find(&format!("{name}.weight")) {
            let row = builder.op(Op::Embed { table, index });
            x = builder.add(x, row);
        }
    }
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        x = self::layer(builder, x, layer, encoder, norm)?;
    }
    builder.at("", None);
    let hidden = builder.op(Op::Select { x });
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)
}

fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    encoder: &Encoder,
    norm: Norm,
) -> Result<ValueId, Finding> {
    let causal = builder.hyper.bool("attention.causal")?;
    let attend = Attend {
        mask: if causal { Mask::Causal } else { Mask::All },
        rotation: encoder.rotation.clone(),
        bias: encoder.bias,
        cached: false,
        ..Attend::plain(Heads::of(builder, layer)?, norm)
    };
    let attended = attention(builder, x, &attend)?;
    let mut y = summed(builder, x, attended, "attn_output_norm", norm);
    if builder.has("attn_norm_2.weight") {
        y = summed(builder, x, y, "attn_norm_2", norm);
    }
    let fed = if builder.has("ffn_gate_inp.weight") {
        experts(builder, y, layer, ROUTING)?
    } else {
        feed_forward(builder, y, encoder.function, "")?
    };
    Ok(summed(builder, y, fed, "layer_output_norm", norm))
}

fn summed(
    builder: &mut Builder<'_>,
    x: ValueId,
    added: ValueId,
    name: &str,
    norm: Norm,
) -> ValueId {
    let sum = builder.add(x, added);
    builder.norm(sum, name, norm)
}
