//! Rendering in another instance of a WebAssembly module, which has no processes and threads.

use std::borrow::Cow;

use super::{Frame, Request, read_frame};
use crate::template::{Context, Error, Limits, TemplateSource};

/// Function that passes a request to [`Renderer::serve`](crate::template::Renderer::serve) in a new instance and returns the
/// response; `None` if the instance failed.
pub type Call = fn(&[u8]) -> Option<Vec<u8>>;

/// Renders as [`Renderer::render_each`](crate::template::Renderer::render_each).
pub fn run(
    call: Call,
    limits: &Limits,
    source: &TemplateSource,
    contexts: &[Context],
) -> Result<Vec<Frame>, Error> {
    let request =
        Request { limits: *limits, source: Cow::Borrowed(source), contexts: contexts.into() };
    let request = serde_json::to_vec(&request).map_err(broken)?;
    // The engine itself limits steps and output: what remains is stack and memory.
    let response =
        call(&request).ok_or_else(|| Error::limit("the stack or memory of its sandbox".into()))?;
    let mut response = &response[..];
    let mut next = || read_frame(&mut response, limits.text_len).map_err(broken);
    next()??;
    let mut texts = Vec::new();
    for _ in contexts {
        let text = next()?;
        let is_last = matches!(text, Err(Error::Limit { .. }));
        texts.push(text);
        if is_last {
            break;
        }
    }
    Ok(texts)
}

fn broken(cause: impl std::fmt::Display) -> Error {
    Error::Process(cause.to_string())
}
