//! Errors of parsing and rendering.

/// Error of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Cause.
    pub kind: ErrorKind,
    /// Line in the template, from 1; 0 if unknown.
    pub line: usize,
}

/// Cause of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The template is not valid Jinja, for this reason.
    Syntax(String),
    /// An operation failed, for this reason.
    Failed(String),
    /// The template called `raise_exception` with this message.
    Raised(String),
    /// The steps are used up.
    OutOfSteps,
    /// The output exceeds its limit.
    OutputFull,
}

/// Result of an operation of a template.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error at an unknown line.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, line: 0 }
    }

    /// Sets the line, unless it is known.
    pub fn at(mut self, line: usize) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

/// Returns the error of a failed operation.
pub fn failed<T>(cause: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Failed(cause.into())))
}
