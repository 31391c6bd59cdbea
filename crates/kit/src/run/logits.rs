//! What a model computes for some ids.

use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Value};
use gguf_store::Progress;

use super::Running;
use crate::Error;

/// What goes into the encoder of a model that has one.
#[derive(Clone, Copy, Debug)]
pub enum ForEncoder<'a> {
    /// Nothing.
    Nothing,
    /// Features, `[frames, width]`.
    Features(&'a Value),
    /// Token ids.
    Ids(&'a [u32]),
}

/// Rows for all ids: logits, or of a model without an output matrix its last hidden states.
///
/// # Errors
/// As [`Context::run`], [`Context::encode`] and [`Context::encode_tokens`]; `features-missing` if the
/// model has an encoder and there is nothing for it.
pub fn logits(
    running: &Running,
    ids: &[u32],
    for_encoder: ForEncoder<'_>,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Value, Error> {
    let graph = running.executor.graph();
    let kind = match graph.output(OutputKind::Logits) {
        Some(_) => OutputKind::Logits,
        None => OutputKind::Hidden,
    };
    let tokens = match for_encoder {
        ForEncoder::Ids(encoded) => ids.len().max(encoded.len()),
        _ => ids.len(),
    };
    let options = ContextOptions { tokens: tokens.max(1), cache_type, ..Default::default() };
    let mut context = Context::new(running.executor.clone(), options)?;
    match (for_encoder, graph.encoder()) {
        (ForEncoder::Features(features), _) => {
            context.encode(0, features, progress)?;
        }
        (ForEncoder::Ids(ids), _) => {
            context.encode_tokens(0, ids, progress)?;
        }
        (ForEncoder::Nothing, Some((program, _))) => {
            let what = "the model has an encoder, and there is nothing for it";
            let help = match program.features_width() {
                Some(_) => "give it features with --features",
                None => "give it token ids with --encoder-ids",
            };
            return Err(Error::request("features-missing", what, help));
        }
        (ForEncoder::Nothing, None) => {}
    }
    context.run(&Batch::of_all(ids), kind, progress)
}
