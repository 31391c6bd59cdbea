//! Per-layer embeddings (Gemma 3n and 4): an additional token embedding for each layer.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Embedding, GatedActivation, Index, Slice, ValueId};

use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Adds the per-layer inputs of all layers, from the per-layer token embedding and a projection of the
/// embedding `x`.
pub(crate) fn per_layer_inputs(builder: &mut Builder<'_>, x: ValueId) -> Result<ValueId, Finding> {
    let norm = Norm::rms(builder)?;
    let layers = builder.size(key::BLOCK_COUNT)?;
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let len = builder.size(key::EMBEDDING_LENGTH_PER_LAYER_INPUT)? as f32;
    let table = builder.weight("per_layer_token_embd.weight")?;
    let told = builder.op(Embedding { table, index: Index::Token });
    let told = builder.scale(told, len.sqrt());
    let made = builder.matmul(x, "per_layer_model_proj")?;
    let made = builder.scale(made, 1.0 / width.sqrt());
    let made = builder.group_norm(made, "per_layer_proj_norm", norm, layers);
    let both = builder.add(made, told);
    Ok(builder.scale(both, std::f32::consts::FRAC_1_SQRT_2))
}

/// Adds the gated per-layer input to the hidden state `x` of a layer.
pub(crate) fn add_per_layer_input(
    builder: &mut Builder<'_>,
    x: ValueId,
    inputs: ValueId,
    layer: u64,
) -> Result<ValueId, Finding> {
    let norm = Norm::rms(builder)?;
    let len = builder.size(key::EMBEDDING_LENGTH_PER_LAYER_INPUT)?;
    let start = u32::try_from(layer).unwrap_or(u32::MAX).saturating_mul(len);
    let up = builder.op(Slice { x: inputs, groups: 1, start, len });
    let gate = builder.matmul(x, "inp_gate")?;
    let made =
        builder.op(GatedActivation { gate, up, function: ActivationFunction::GeluTanh.into() });
    let made = builder.matmul(made, "proj")?;
    Ok(builder.norm(made, "post_norm", norm))
}
