//! Hessians of a Whisper model for a recording that it transcribes.

use std::sync::Arc;

use gguf::{Error, Metadata, Value};
use gguf_runtime::Executor;
use gguf_speech::{TranscribeOptions, Transcriber};
use gguf_store::{Progress, digest};

use super::{CalibrationText, KEY_PREFIX, TextSource};
use crate::{HessianCollector, METHOD, OnHessians};

/// Passes the Hessians of all matrices to `on_hessians`. Returns the metadata keys that describe the recording.
pub(super) fn collect(
    executor: &Arc<Executor>,
    metadata: &Metadata,
    recording: &CalibrationText,
    on_hessians: &mut OnHessians<'_>,
    progress: &dyn Progress,
) -> Result<Vec<(String, Value)>, Error> {
    let [TextSource::File(path)] = &recording.sources[..] else {
        let what = "a Whisper model is calibrated by one recording";
        return Err(Error::request("calibration-impossible", what, "give a recording of speech"));
    };
    let bytes = std::fs::read(path).map_err(|fault| Error::environment("read", path, fault))?;
    let collector = HessianCollector::new(executor.graph().raw());
    let options = TranscribeOptions::default();
    let mut transcriber = Transcriber::new(executor.clone(), metadata, options)?;
    let tokens = transcriber.observe(path, &collector, progress)?;
    for (tensors, hessian) in collector.finish()? {
        on_hessians(&tensors, std::slice::from_ref(&hessian))?;
    }
    let key = |name: &str| format!("{KEY_PREFIX}{name}");
    Ok(vec![
        (key("method"), Value::from(METHOD)),
        (key("text_sha256"), Value::from(digest::sha256(&bytes))),
        (key("tokens"), Value::U32(u32::try_from(tokens).unwrap_or(u32::MAX))),
    ])
}
