//! Computation graph of EAGLE 3. The encoder joins hidden states of the target; the main program drafts from them.

use gguf::Finding;
use gguf_graph::{Concat, Features, OutputKind, RopeLayout, SelectOutputs, TokenFeatures};

use crate::blocks::{self, Decoder, add_outputs, attend, attention, draft_embedding};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a layer whose attention reads the normed embedding of a token and the normed features of the token before.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let blocks = builder.hparams.u64(key::BLOCK_COUNT)?;
    if blocks != 1 {
        let message = format!("`{}` is {blocks}; EAGLE 3 models have one layer", key::BLOCK_COUNT);
        return Err(Finding::error("key-value", message).help("convert the model again"));
    }
    let decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    let layers = builder.u64_array(key::TARGET_LAYERS)?.len() as u32;
    let width = builder.size(key::TARGET_HIDDEN_SIZE)?.saturating_mul(layers);
    let mut states = builder.op(Features { width });
    if builder.has_norm("enc.output_norm") || is_set(builder, key::NORM_BEFORE_FC)? {
        builder.weight("enc.output_norm.weight")?;
        states = builder.norm(states, "enc.output_norm", decoder.norm);
    }
    let joined = builder.matmul(states, "fc")?;
    builder.output(OutputKind::Features, joined);
    builder.end_encoder();

    let embedded = draft_embedding(builder)?;
    let features = builder.op(TokenFeatures { width: builder.size(key::EMBEDDING_LENGTH)? });
    builder.set_layer("blk.", Some(0));
    let a = builder.norm(embedded, "attn_norm", decoder.norm);
    let b = builder.norm(features, "attn_norm_2", decoder.norm);
    let residual = if is_set(builder, key::NORM_BEFORE_RESIDUAL)? { b } else { features };
    let both = builder.op(Concat { a, b, groups: 1, broadcast: false });
    let attend = attend(builder, 0, &decoder)?;
    let attended = attention(builder, both, &attend)?;
    let x = builder.add(attended, residual);
    let normed = builder.norm(x, "ffn_norm", decoder.norm);
    let fed = blocks::feed_forward(builder, normed, decoder.function, "")?;
    let x = builder.add(x, fed);
    builder.set_layer("", None);
    let x = builder.op(SelectOutputs { x });
    builder.output(OutputKind::Features, x);
    let hidden = builder.norm(x, decoder.output_norm, decoder.norm);
    add_outputs(builder, hidden, &decoder)
}

/// Returns whether the file has a flag that is true.
fn is_set(builder: &Builder<'_>, name: &str) -> Result<bool, Finding> {
    Ok(builder.hparams.value(name).is_some() && builder.hparams.bool(name)?)
}
