//! Errors of chat templates.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::limits::{Limits, megabytes};
use crate::jinja::{self, ErrorKind};

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

    /// Converts an error of the engine, which had these limits.
    pub(super) fn from_engine(error: jinja::Error, limits: &Limits) -> Self {
        let line = error.line;
        match error.kind {
            ErrorKind::Syntax(cause) => Self::Syntax { line, cause: truncated(&cause) },
            ErrorKind::Failed(cause) => Self::Render { line, cause: truncated(&cause) },
            ErrorKind::Raised(message) => Self::Refused { line, message: truncated(&message) },
            ErrorKind::OutOfSteps => Self::Limit { line, limit: format!("{} steps", limits.steps) },
            ErrorKind::OutputFull => {
                let limit = format!("{} of text", megabytes(limits.text_len as u64));
                Self::Limit { line, limit }
            }
        }
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
