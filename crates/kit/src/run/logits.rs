//! What a model computes for some ids.

use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Value};
use gguf_store::Progress;

use super::Running;
use crate::Error;

/// Rows for all ids: logits, or of a model without an output matrix its last hidden states.
///
/// `features` are for the encoder, `[frames, width]`, of a model that has one.
///
/// # Errors
/// As [`Context::run`] and [`Context::encode`]; `features-missing` if the model has an encoder and
/// there are no features.
pub fn logits(
    running: &Running,
    ids: &[u32],
    features: Option<&Value>,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Value, Error> {
    let graph = running.executor.graph();
    let kind = match graph.output(OutputKind::Logits) {
        Some(_) => OutputKind::Logits,
        None => OutputKind::Hidden,
    };
    let options = ContextOptions { tokens: ids.len().max(1), cache_type, ..Default::default() };
    let mut context = Context::new(running.executor.clone(), options)?;
    let reads_features =
        graph.encoder().is_some_and(|(program, _)| program.features_width().is_some());
    match features {
        Some(features) => {
            context.encode(0, features, progress)?;
        }
        None if reads_features => {
            let what = "the model has an encoder, and there are no features for it";
            return Err(Error::request("features-missing", what, "give them with --features"));
        }
        None => {}
    }
    context.run(&Batch::of_all(ids), kind, progress)
}
