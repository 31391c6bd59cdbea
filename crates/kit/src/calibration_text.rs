//! Calibration texts: the bundled one, and texts that a model writes itself.

use gguf::Metadata;
pub use gguf_calibrate::{PreparedText, SelfTextOptions, bundled_text};
use gguf_calibrate::{Turn, self_text};
use gguf_runtime::Precision;
use gguf_store::Progress;
use gguf_tokenizer::template::{Context, Renderer, TemplateSource};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use serde_json::json;

use crate::run::{ExecutorOptions, load_model};
use crate::{Error, Opened};

/// Takes the place of the message of the user in the chat template.
const MESSAGE: &str = "MESSAGE_OF_THE_USER";

/// Samples a text from the model that `source` names, with `renderer` for its chat template.
///
/// # Errors
/// If the model cannot be run; as [`self_text`].
pub fn calibration_text(
    opened: &Opened,
    source: &str,
    renderer: &Renderer,
    options: SelfTextOptions,
    progress: &dyn Progress,
) -> Result<PreparedText, Error> {
    let in_file = |error: Error| error.in_file(source.as_ref());
    let run = ExecutorOptions { precision: Precision::Fast, ..ExecutorOptions::default() };
    let loaded = load_model(opened.model(), Vec::new(), source, &run)?;
    let tokenizer = Tokenizer::from_metadata(&loaded.metadata, Default::default());
    let tokenizer = tokenizer.map_err(in_file)?;
    let mut notes = Vec::new();
    let turn = match turn(&loaded.metadata, &tokenizer, renderer) {
        Ok(turn) => turn,
        Err(fault) => {
            notes.push(format!("the calibration text has no chats: {fault}"));
            None
        }
    };
    let text = self_text(&loaded.executor, &tokenizer, turn.as_ref(), options, progress);
    Ok(PreparedText { text: text.map_err(in_file)?, notes })
}

/// Returns the chat template around the first message of a user; `None` if the model has no template.
fn turn(
    metadata: &Metadata,
    tokenizer: &Tokenizer,
    renderer: &Renderer,
) -> Result<Option<Turn>, String> {
    let source = TemplateSource::from_metadata(metadata, None);
    let Some(template) = source.map_err(|fault| fault.to_string())? else { return Ok(None) };
    let context = Context::new(json!([{ "role": "user", "content": MESSAGE }]));
    let text = renderer.render(&template, &context).map_err(|fault| fault.to_string())?;
    let Some((before, after)) = text.split_once(MESSAGE) else {
        return Err("the chat template omits the message of the user".to_owned());
    };
    // The template itself writes BOS and EOS.
    let options = EncodeOptions { add_special: false, parse_special: true };
    let encode = |text| tokenizer.encode(text, options);
    Ok(Some(Turn { before: encode(before), after: encode(after) }))
}
