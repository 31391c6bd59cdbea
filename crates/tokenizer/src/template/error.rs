//! Why a template gives no text.

use std::path::Path;

use minijinja::ErrorKind;
use serde::{Deserialize, Serialize};

use super::environment::Refusal;

/// Bytes of a message that are kept: templates may make it as long as they like.
const LEN: usize = 2000;

/// Why a template gives no text.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// The value of the key is not a text in UTF-8.
    #[error("key `{0}` is no text in UTF-8")]
    NotText(String),
    /// The template is not Jinja.
    #[error("{}{cause}", at(*line))]
    Syntax {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// The template called `raise_exception`: it does not want this conversation.
    #[error("{}the template refuses the conversation: {message}", at(*line))]
    Refused {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// The template's own words.
        message: String,
    },
    /// The template met one of the [`Limits`](super::Limits).
    #[error("{}the template needs more than {limit}", at(*line))]
    Limit {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// The limit that it met, such as `256 MB of memory`.
        limit: String,
    },
    /// The template fails with this conversation.
    #[error("{}{cause}", at(*line))]
    Render {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// What went wrong there.
        cause: String,
    },
    /// The process that should render does not start, or does not answer as it should; the
    /// template is not at fault.
    #[error("the process that renders chat templates: {0}")]
    Process(String),
}

/// What stands before a message about a line.
fn at(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

impl Error {
    /// A limit that was met at an unknown line.
    pub(super) fn limit(limit: String) -> Self {
        Self::Limit { line: 0, limit }
    }

    /// The engine's fault, not the template's.
    pub(super) fn engine(cause: &str) -> Self {
        Self::Render { line: 0, cause: cause.to_owned() }
    }

    /// The error of parsing.
    pub(super) fn syntax(error: &minijinja::Error) -> Self {
        Self::Syntax { line: line(error), cause: cause(error) }
    }

    /// The error of a rendering, by what caused it; `steps` is the limit on steps.
    pub(super) fn rendering(error: &minijinja::Error, steps: u64) -> Self {
        // Errors within macros and blocks are wrapped; the innermost one has the cause.
        let mut innermost = error;
        while let Some(source) = std::error::Error::source(innermost) {
            if let Some(refusal) = source.downcast_ref::<Refusal>() {
                return Self::Refused { line: line(innermost), message: shortened(&refusal.0) };
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

/// What an error says, without the place, which has a field of its own.
fn cause(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {}", error.kind(), shortened(detail)),
        None => error.kind().to_string(),
    }
}

fn shortened(text: &str) -> String {
    let kept = &text[..text.floor_char_boundary(LEN)];
    if kept.len() < text.len() { format!("{kept} ...") } else { kept.to_owned() }
}

/// Of the template; of the environment where the process that renders is to blame.
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
