//! Errors of chat templates.

use std::path::Path;

use minijinja::ErrorKind;
use serde::{Deserialize, Serialize};

use super::environment::RaisedException;

/// Maximum length of a message in bytes, since templates choose it.
const MAX_MESSAGE_LEN: usize = 2000;

/// Error of parsing or rendering a chat template.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// The value of the key is not a string in UTF-8.
    #[error("key `{0}` is not a string in UTF-8")]
    NotText(String),
    /// The template is not valid Jinja.
    #[error("{}{cause}", at(*line))]
    Syntax {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// Description of the error.
        cause: String,
    },
    /// The template called `raise_exception`: it rejects the conversation.
    #[error("{}the template refuses the conversation: {message}", at(*line))]
    Refused {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// Message of the template.
        message: String,
    },
    /// The template exceeded one of the [`Limits`](super::Limits).
    #[error("{}the template needs more than {limit}", at(*line))]
    Limit {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// The limit, such as `256 MB of memory`.
        limit: String,
    },
    /// Rendering failed.
    #[error("{}{cause}", at(*line))]
    Render {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// Description of the error.
        cause: String,
    },
    /// The rendering process did not start or sent an invalid response; the template is not at
    /// fault.
    #[error("the process that renders chat templates: {0}")]
    Process(String),
}

/// Formats the line as a prefix of a message.
fn at(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

impl Error {
    /// Builds an error for a limit exceeded at an unknown line.
    pub(super) fn limit(limit: String) -> Self {
        Self::Limit { line: 0, limit }
    }

    /// Builds an error for a fault of the engine.
    pub(super) fn engine(cause: &str) -> Self {
        Self::Render { line: 0, cause: cause.to_owned() }
    }

    /// Converts a parse error.
    pub(super) fn syntax(error: &minijinja::Error) -> Self {
        Self::Syntax { line: line(error), cause: cause(error) }
    }

    /// Converts a rendering error by its cause; `steps` is the limit on steps.
    pub(super) fn rendering(error: &minijinja::Error, steps: u64) -> Self {
        // Errors within macros and blocks are wrapped; the innermost one has the cause.
        let mut innermost = error;
        while let Some(source) = std::error::Error::source(innermost) {
            if let Some(refusal) = source.downcast_ref::<RaisedException>() {
                return Self::Refused { line: line(innermost), message: truncated(&refusal.0) };
            }
            let Some(source) = source.downcast_ref() else { break };
            innermost = source;
        }
        let line = line(innermost);
        if innermost.kind() == ErrorKind::OutOfFuel {
            return Self::Limit { line, limit: format!("{steps} steps") };
        }
        Self::Render { line, cause: cause(innermost) }
    }
}

fn line(error: &minijinja::Error) -> usize {
    error.line().unwrap_or_default()
}

/// Formats an error without its line, which is a separate field.
fn cause(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {}", error.kind(), truncated(detail)),
        None => error.kind().to_string(),
    }
}

fn truncated(text: &str) -> String {
    let start = &text[..text.floor_char_boundary(MAX_MESSAGE_LEN)];
    if start.len() < text.len() { format!("{start} ...") } else { start.to_owned() }
}

/// A fault of the template is an input error, a fault of the rendering process an environment
/// error.
impl From<Error> for gguf::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Process(_) => {
                let source = std::io::Error::other(error.to_string());
                return Self::environment("render", Path::new("the chat template"), source);
            }
            Error::NotText(_) => "template-not-text",
            Error::Syntax { .. } => "template-syntax",
            Error::Refused { .. } => "template-refused",
            Error::Limit { .. } => "template-limit",
            Error::Render { .. } => "template-render",
        };
        gguf::Finding::error(code, format!("chat template: {error}")).into()
    }
}
