//! BERT and what follows it: encoders of text, whose norms stand behind the sums.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Attend, Heads, attention, feed_forward, pooled, rotation};
use crate::op::{Function, Index, Mask, Op};
use crate::raw::{OutputKind, ValueId};
use crate::rotation::{Pairs, Rotation};

/// BERT itself, RoBERTa and XLM-RoBERTa: learned positions.
pub(super) fn bert(builder: &mut Builder<'_>) -> Result<(), Finding> {
    encoder(builder, Function::Gelu, None)
}

/// Nomic's: rotation, and a gate.
pub(super) fn nomic(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let rotation = rotation(builder, Pairs::Halves)?;
    encoder(builder, Function::Silu, rotation)
}

fn encoder(
    builder: &mut Builder<'_>,
    function: Function,
    rotation: Option<Rotation>,
) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    let causal = builder.hyper.bool("attention.causal")?;
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
        let attend = Attend {
            mask: if causal { Mask::Causal } else { Mask::All },
            rotation: rotation.clone(),
            cached: false,
            ..Attend::plain(Heads::of(builder, layer)?, norm)
        };
        let attended = attention(builder, x, &attend)?;
        x = summed(builder, x, attended, "attn_output_norm", norm);
        let fed = feed_forward(builder, x, function, "")?;
        x = summed(builder, x, fed, "layer_output_norm", norm);
    }
    builder.at("", None);
    let hidden = builder.op(Op::Select { x });
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)
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
