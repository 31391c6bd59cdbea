//! Why a command failed, and the exit code that says whose fault it was.

use std::io;

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

impl From<gguf::Error> for Failure {
    fn from(error: gguf::Error) -> Self {
        let message = error.to_string();
        match error {
            gguf::Error::Environment { .. } => Self::Environment(message),
            gguf::Error::Caller(_) | gguf::Error::Request { .. } => Self::Usage(message),
            gguf::Error::Exists(_) => {
                Self::Usage(format!("{message}: name another output, or replace it with --force"))
            }
            gguf::Error::Interrupted => Self::Interrupted,
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

impl From<gguf_quantize::imatrix::ImatrixError> for Failure {
    fn from(error: gguf_quantize::imatrix::ImatrixError) -> Self {
        use gguf_quantize::imatrix::ImatrixError as E;
        let message = error.to_string();
        match error {
            E::Container(error) => error.into(),
            E::Read { .. } => Self::Environment(message),
            E::Different { .. } | E::Unused => Self::Usage(message),
            E::Broken { .. } => Self::Input(message),
        }
    }
}

impl From<gguf_tokenizer::template::Error> for Failure {
    fn from(error: gguf_tokenizer::template::Error) -> Self {
        match error {
            gguf_tokenizer::template::Error::Process(_) => Self::Environment(error.to_string()),
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
