//! BERT and what follows it: encoders of text, whose norms stand behind the sums.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Attend, Heads, attention, feed_forward};
use crate::op::{Function, Index, Mask, Op, PositionBias};
use crate::raw::{OutputKind, ValueId};
use crate::rotation::Rotation;

pub(super) fn bert(builder: &mut Builder<'_>) -> Result<(), Finding> {
    encoder(builder, Function::Gelu, None)
}

fn encoder(
    builder: &mut Builder<'_>,
    function: Function,
    rotation: Option<Rotation>,
) -> Result<(), Finding> {
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
    let causal = builder.hyper.bool("attention.causal")?;
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        let heads = Heads::of(builder, layer)?;
        let attend = Attend {
            heads,
            scale: 1.0 / (heads.key_len as f32).sqrt(),
            mask: if causal { Mask::Causal } else { Mask::All },
            rotation: rotation.clone(),
            norm,
            bias: PositionBias::None,
            soft_cap: None,
            clamp: None,
            cached: false,
        };
        let attended = attention(builder, x, &attend)?;
        x = summed(builder, x, attended, "attn_output_norm", norm);
        let fed = feed_forward(builder, x, function, "")?;
        x = summed(builder, x, fed, "layer_output_norm", norm);
    }
    builder.at("", None);
    let hidden = builder.op(Op::Select { x });
    builder.output(OutputKind::Hidden, hidden);
    Ok(())
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
