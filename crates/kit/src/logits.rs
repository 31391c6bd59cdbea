//! Logits of token ids.

use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Value};
use gguf_store::Progress;

use crate::Error;
use crate::run::LoadedModel;

/// Input of the encoder.
#[derive(Clone, Copy, Debug)]
pub enum EncoderInput<'a> {
    /// None, for a model without an encoder.
    None,
    /// Features, `[frames, width]`.
    Features(&'a Value),
    /// Token ids.
    Ids(&'a [u32]),
}

/// Computes the logits of all ids, or the last hidden states of a model without an output projection.
///
/// # Errors
/// As [`Context::run_finite`], [`Context::encode`] and [`Context::encode_tokens`]; `features-missing` if the model has an
/// encoder and `encoder_input` is [`EncoderInput::None`].
pub fn logits(
    model: &LoadedModel,
    ids: &[u32],
    encoder_input: EncoderInput<'_>,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Value, Error> {
    let graph = model.executor.graph();
    let kind = match graph.output(OutputKind::Logits) {
        Some(_) => OutputKind::Logits,
        None => OutputKind::Hidden,
    };
    let tokens = match encoder_input {
        EncoderInput::Ids(encoded) => ids.len().max(encoded.len()),
        _ => ids.len(),
    };
    let options = ContextOptions { tokens: tokens.max(1), cache_type, ..Default::default() };
    let mut context = Context::new(model.executor.clone(), options)?;
    match (encoder_input, graph.encoder()) {
        (EncoderInput::Features(features), _) => {
            context.encode(0, features, progress)?;
        }
        (EncoderInput::Ids(ids), _) => {
            context.encode_tokens(0, ids, progress)?;
        }
        (EncoderInput::None, Some((program, _))) => {
            let what = "the input of the encoder is missing";
            let help = match program.features_width() {
                Some(_) => "give features with --features",
                None => "give token ids with --encoder-ids",
            };
            return Err(Error::request("features-missing", what, help));
        }
        (EncoderInput::None, None) => {}
    }
    context.run_finite(&Batch::all_outputs(ids), kind, progress)
}
