//! Speculative decoding with hidden states of the model: what draft models read, and the layer for multi-token prediction
//! (MTP) as a draft model.

use gguf::Finding;
use gguf_graph::{Concat, Embedding, Index, OutputKind, SelectOutputs, TokenFeatures, ValueId};

use super::concatenated;
use super::decoder::{Decoder, add_logits, layers, normed};
use crate::graph::{Builder, DraftFeatures, Purpose};
use crate::schema::key;

/// Adds the features that a draft model reads, given the inputs of all layers and the output of the last one.
pub(crate) fn draft_features(
    builder: &mut Builder<'_>,
    inputs: &[ValueId],
    decoder: &Decoder,
) -> Result<(), Finding> {
    let features = match builder.purpose {
        Purpose::Target(DraftFeatures::LayerInputs(layers)) => {
            layer_inputs(builder, inputs, layers)?
        }
        Purpose::Target(DraftFeatures::Mtp) => {
            let last = inputs[inputs.len() - 1];
            if decoder.mtp_before_norm {
                last
            } else {
                normed(builder, last, decoder.output_norm, decoder)
            }
        }
        Purpose::Model | Purpose::Mtp | Purpose::MarkovHead => return Ok(()),
    };
    builder.output(OutputKind::Features, features);
    Ok(())
}

/// Adds the concatenated inputs of layers.
fn layer_inputs(
    builder: &mut Builder<'_>,
    inputs: &[ValueId],
    layers: &[u64],
) -> Result<ValueId, Finding> {
    let input = |layer: &u64| {
        let found = usize::try_from(*layer).ok().and_then(|layer| inputs.get(layer).copied());
        found.ok_or_else(|| {
            let count = inputs.len() - 1;
            let message = format!("the draft reads layer {layer}; the target has {count} layers");
            Finding::error("draft-unusable", message).help("use the draft with its own target")
        })
    };
    let inputs = layers.iter().map(input).collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = inputs.split_first() else {
        return Err(Finding::error("draft-unusable", "the draft names no layers of its target")
            .help("convert the draft again"));
    };
    Ok(concatenated(builder, *first, others))
}

/// Adds the token embedding of a draft model, which may be that of its target model.
pub(crate) fn draft_embedding(builder: &mut Builder<'_>) -> Result<ValueId, Finding> {
    if !builder.has("token_embd.weight") {
        let message = "the draft model has no token embedding: it uses that of its target model";
        return Err(Finding::error("tensor-missing", message)
            .tensor("token_embd.weight")
            .help("run it with its target model: `gguf generate TARGET --draft DRAFT`"));
    }
    builder.embedding()
}

/// Adds the first MTP layer: it reads the embedding of a token, and the hidden state of the target for the token before.
/// (`graph_mtp` in llama.cpp; arXiv 2412.19437, section 2.2)
pub(crate) fn mtp_draft(builder: &mut Builder<'_>, decoder: &Decoder) -> Result<(), Finding> {
    let layer = layers(builder)?;
    if layer == builder.hparams.u64(key::BLOCK_COUNT)? {
        return Err(Finding::error("draft-unusable", "the model has no MTP layers")
            .help("use a draft model"));
    }
    builder.set_layer("blk.", Some(layer));
    let table = match builder.find("nextn.embed_tokens.weight") {
        Some(own) => own,
        None => builder.global_weight("token_embd.weight")?,
    };
    let embedded = builder.op(Embedding { table, index: Index::Token });
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let hidden = builder.op(TokenFeatures { width });
    let a = builder.norm(embedded, "nextn.enorm", decoder.norm);
    let b = builder.norm(hidden, "nextn.hnorm", decoder.norm);
    let both = builder.op(Concat { a, b, groups: 1, broadcast: false });
    let x = builder.matmul(both, "nextn.eh_proj")?;
    let x = (decoder.layer)(builder, x, layer, decoder)?;
    let x = builder.op(SelectOutputs { x });
    let has_own_head = builder.has("nextn.shared_head_head.weight");
    let has_own_norm = builder.has_norm("nextn.shared_head_norm");
    builder.set_layer("", None);
    let own = |name: &str| format!("blk.{layer}.nextn.{name}");
    let normed = match has_own_norm {
        true => builder.norm(x, &own("shared_head_norm"), decoder.norm),
        false => normed(builder, x, decoder.output_norm, decoder),
    };
    builder.output(OutputKind::Features, if decoder.mtp_before_norm { x } else { normed });
    let head = match has_own_head {
        true => own("shared_head_head"),
        false if builder.has("output.weight") => "output".to_owned(),
        false => "token_embd".to_owned(),
    };
    add_logits(builder, normed, &head, decoder)
}
