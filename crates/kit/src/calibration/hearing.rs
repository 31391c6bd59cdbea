//! A recording that a model hears and writes down, while what enters its matrices is summed.

use gguf::{Error, Value};
use gguf_calibrate::{Collector, EachSeen, METHOD};
use gguf_store::Progress;

use super::PREFIX;
use super::reading::Reading;
use crate::digest;
use crate::run::Running;
use crate::run::transcribe::{Options, Transcriber};

/// Gives `each` the names of tensors that are multiplied with the same, and the moments of that. Returns the keys that
/// say what was heard.
pub(super) fn collect(
    running: &Running,
    reading: &Reading,
    each: &mut EachSeen<'_>,
    progress: &dyn Progress,
) -> Result<Vec<(String, Value)>, Error> {
    let path = &reading.text;
    let recording = std::fs::read(path).map_err(|fault| Error::environment("read", path, fault))?;
    let collector = Collector::new(running.executor.graph().raw());
    let mut transcriber = Transcriber::new(running, Options::default())?;
    let tokens = transcriber.observe(path, &collector, progress)?;
    for (tensors, moments) in collector.finish()? {
        each(&tensors, std::slice::from_ref(&moments))?;
    }
    let key = |name: &str| format!("{PREFIX}{name}");
    Ok(vec![
        (key("method"), Value::from(METHOD)),
        (key("text_sha256"), Value::from(digest::sha256(&recording))),
        (key("tokens"), Value::U32(u32::try_from(tokens).unwrap_or(u32::MAX))),
    ])
}
