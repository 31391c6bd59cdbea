//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest,
//! ModernBERT, NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, Embedding, Gating, GluFunction, Index, Mask, OutputKind, PositionBias,
    RopeParameters, SelectOutputs, ValueId,
};

use crate::blocks::{Attend, Heads, Routing, attention, experts, feed_forward, pooled};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// What differs between them. Which matrices, biases and norms there are, the tensors say.
pub(crate) struct Encoder {
    /// What is in the middle of feed-forward networks.
    pub function: ActivationFunction,
    pub rotation: Option<RopeParameters>,
    pub bias: PositionBias,
}

/// Experts by softmax over all, the weights of those chosen left as they are.
const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalize: false,
    weigh_input: false,
    function: GluFunction::Plain(ActivationFunction::Gelu),
    soft_cap: None,
};

/// BERT itself, RoBERTa and XLM-RoBERTa: learned positions.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let (function, bias) = (ActivationFunction::Gelu, PositionBias::None);
    encoder(builder, &Encoder { function, rotation: None, bias })
}

pub(crate) fn encoder(builder: &mut Builder<'_>, encoder: &Encoder) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let mut x = builder.embedding()?;
    // All of a text is of the first type.
    for (name, index) in [("token_types", Index::Zero), ("position_embd", Index::Position)] {
        if let Some(table) = builder.find(&format!("{name}.weight")) {
            let row = builder.op(Embedding { table, index });
            x = builder.add(x, row);
        }
    }
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hyper.u64(key::BLOCK_COUNT)? {
        builder.at("blk.", Some(layer));
        x = self::layer(builder, x, layer, encoder, norm)?;
    }
    builder.at("", None);
    let hidden = builder.op(SelectOutputs { x });
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
    let causal = builder.hyper.bool(key::ATTENTION_CAUSAL)?;
    let attend = Attend {
        mask: if causal { Mask::Causal } else { Mask::Full },
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
