//! Why a command failed, and the exit code that says whose fault it was.

use std::io;
use std::path::Path;

/// A failed command.
pub enum Failure {
    /// The input is at fault.
    Input(String),
    /// The input has findings of severity error, which are printed already.
    Findings,
    /// The request is at fault.
    Usage(String),
    /// Something cannot be read or written.
    Environment(String),
    /// The user asked to stop.
    Interrupted,
    /// The same, and what is done can be gone on with.
    Paused,
    /// Nobody reads our output any more.
    ClosedPipe,
}

impl Failure {
    /// What to print, in one line.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Input(message) | Self::Usage(message) | Self::Environment(message) => {
                Some(message)
            }
            Self::Interrupted => Some("interrupted; nothing was left behind"),
            Self::Paused => Some("interrupted; what is done stays: go on with the same command"),
            Self::Findings | Self::ClosedPipe => None,
        }
    }

    /// 1 the input, 2 the request, 3 the environment, 130 interrupted, as shells have it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) | Self::Findings => 1,
            Self::Usage(_) => 2,
            Self::Environment(_) => 3,
            Self::Interrupted | Self::Paused => 130,
            Self::ClosedPipe => 0,
        }
    }
}

/// The content of a text file that the user names.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|fault| match fault.kind() {
        io::ErrorKind::InvalidData => {
            Failure::Input(format!("{}: is not valid UTF-8", path.display()))
        }
        _ => Failure::Environment(format!("cannot read {}: {fault}", path.display())),
    })
}

impl From<gguf::Error> for Failure {
    fn from(error: gguf::Error) -> Self {
        let message = error.to_string();
        match error {
            gguf::Error::Environment { .. } => Self::Environment(message),
            gguf::Error::Caller(_) => Self::Usage(message),
            gguf::Error::Exists(_) => {
                Self::Usage(format!("{message}: name another output, or replace it with --force"))
            }
            gguf::Error::Interrupted => Self::Interrupted,
            _ => Self::Input(message),
        }
    }
}

impl From<gguf_convert::Error> for Failure {
    fn from(error: gguf_convert::Error) -> Self {
        let message = error.to_string();
        match error {
            gguf_convert::Error::Container(error) => error.into(),
            gguf_convert::Error::Environment { .. } => Self::Environment(message),
            gguf_convert::Error::Request { .. } => Self::Usage(message),
            _ => Self::Input(message),
        }
    }
}

impl From<gguf_remote::Error> for Failure {
    fn from(error: gguf_remote::Error) -> Self {
        let message = error.to_string();
        match error {
            gguf_remote::Error::Local(error) => error.into(),
            gguf_remote::Error::Location { .. } | gguf_remote::Error::Choice(_) => {
                Self::Usage(message)
            }
            _ => Self::Environment(message),
        }
    }
}

impl From<gguf_quant::imatrix::ImatrixError> for Failure {
    fn from(error: gguf_quant::imatrix::ImatrixError) -> Self {
        use gguf_quant::imatrix::ImatrixError as E;
        let message = error.to_string();
        match error {
            E::Container(error) => error.into(),
            E::Read { .. } => Self::Environment(message),
            E::Different { .. } | E::Unused => Self::Usage(message),
            E::Broken { .. } => Self::Input(message),
        }
    }
}

impl From<gguf_tokenizer::TemplateError> for Failure {
    fn from(error: gguf_tokenizer::TemplateError) -> Self {
        match error {
            gguf_tokenizer::TemplateError::Process(_) => Self::Environment(error.to_string()),
            _ => Self::Input(format!("chat template: {error}")),
        }
    }
}

impl From<gguf_tokenizer::Error> for Failure {
    fn from(error: gguf_tokenizer::Error) -> Self {
        Self::Input(error.to_string())
    }
}

/// Only printing gives plain I/O errors here.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Environment(format!("cannot write the output: {error}")),
        }
    }
}
