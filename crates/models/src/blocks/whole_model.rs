//! A whole model: the transformer, or its MTP layer as a draft model.

use gguf::Finding;

use super::decoder::{Decoder, embedding, finish, layers};
use super::drafts::{draft_features, mtp_draft};
use crate::graph::{Builder, Purpose};

/// Adds a whole model: embedding, layers, output.
pub(crate) fn decoder(builder: &mut Builder<'_>, decoder: &Decoder) -> Result<(), Finding> {
    if *builder.purpose == Purpose::Mtp {
        return mtp_draft(builder, decoder);
    }
    let mut inputs = vec![embedding(builder, decoder)?];
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let x = (decoder.layer)(builder, inputs[layer as usize], layer, decoder)?;
        inputs.push(x);
    }
    builder.set_layer("", None);
    draft_features(builder, &inputs, decoder)?;
    finish(builder, inputs[inputs.len() - 1], decoder)
}
