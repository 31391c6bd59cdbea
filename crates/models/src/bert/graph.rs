//! Graph of `bert`: post-norm encoders. `nomic-bert`, `jina-bert-v2` and others share [`encoder`].

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, Embedding, Gating, GluFunction, Index, Mask, OutputKind, PositionBias,
    RopeParameters, SelectOutputs, ValueId,
};

use crate::blocks::{Attend, Heads, Routing, attention, experts, feed_forward, pooled};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Parameters that differ between encoders. Tensors decide which projections, biases and norms
/// exist.
pub(crate) struct Encoder {
    /// Activation function of the FFN.
    pub function: ActivationFunction,
    pub rope: Option<RopeParameters>,
    pub bias: PositionBias,
}

/// Softmax router over all experts, without normalization of the selected weights.
const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalize: false,
    weigh_input: false,
    function: GluFunction::Plain(ActivationFunction::Gelu),
    soft_cap: None,
};

/// BERT, RoBERTa and XLM-RoBERTa: learned positions, GELU.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let (function, bias) = (ActivationFunction::Gelu, PositionBias::None);
    encoder(builder, &Encoder { function, rope: None, bias })
}

/// Builds embedding (token, type and position, then layer norm), layers, and pooling.
pub(crate) fn encoder(builder: &mut Builder<'_>, encoder: &Encoder) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let mut x = builder.embedding()?;
    // All tokens have token type 0.
    for (name, index) in [("token_types", Index::Zero), ("position_embd", Index::Position)] {
        if let Some(table) = builder.find(&format!("{name}.weight")) {
            let row = builder.op(Embedding { table, index });
            x = builder.add(x, row);
        }
    }
    x = builder.norm(x, "token_embd_norm", norm);
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("blk.", Some(layer));
        x = self::layer(builder, x, layer, encoder, norm)?;
    }
    builder.set_layer("", None);
    let hidden = builder.op(SelectOutputs { x });
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)
}

/// `y = norm(x + attention(x))`, with a second norm `norm_2(x + y)` in some models, then `norm(y +
/// ffn(y))`.
fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    encoder: &Encoder,
    norm: Norm,
) -> Result<ValueId, Finding> {
    let causal = builder.hparams.bool(key::ATTENTION_CAUSAL)?;
    let attend = Attend {
        mask: if causal { Mask::Causal } else { Mask::Full },
        rope: encoder.rope.clone(),
        bias: encoder.bias,
        cached: false,
        ..Attend::plain(Heads::of(builder, layer)?, norm)
    };
    let attended = attention(builder, x, &attend)?;
    let mut y = add_norm(builder, x, attended, "attn_output_norm", norm);
    if builder.has("attn_norm_2.weight") {
        y = add_norm(builder, x, y, "attn_norm_2", norm);
    }
    let ffn_output = if builder.has("ffn_gate_inp.weight") {
        experts(builder, y, layer, ROUTING)?
    } else {
        feed_forward(builder, y, encoder.function, "")?
    };
    Ok(add_norm(builder, y, ffn_output, "layer_output_norm", norm))
}

/// `norm(x + added)`.
fn add_norm(
    builder: &mut Builder<'_>,
    x: ValueId,
    added: ValueId,
    name: &str,
    norm: Norm,
) -> ValueId {
    let sum = builder.add(x, added);
    builder.norm(sum, name, norm)
}
