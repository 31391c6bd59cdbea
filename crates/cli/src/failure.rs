//! Why a command failed, and the exit code that says whose fault it was.

use std::io;

use gguf::Fault;

/// A failed command.
pub enum Failure {
    /// The input is at fault.
    Input(String),
    /// The input has findings of severity error, which are printed already.
    Findings,
    /// Of several sources some failed, as was said of each; the exit code is that of the first.
    Said(u8),
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
            Self::Paused => Some("interrupted; what is done stays: go on with --resume"),
            Self::Findings | Self::Said(_) | Self::ClosedPipe => None,
        }
    }

    /// 1 the input, 2 the request, 3 the environment, 130 interrupted, as shells have it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) | Self::Findings => 1,
            Self::Said(code) => *code,
            Self::Usage(_) => 2,
            Self::Environment(_) => 3,
            Self::Interrupted | Self::Paused => 130,
            Self::ClosedPipe => 0,
        }
    }
}

impl From<gguf::Error> for Failure {
    fn from(error: gguf::Error) -> Self {
        let message = match &error {
            gguf::Error::Exists(_) => {
                format!("{error}: name another output, or replace it with --force")
            }
            _ => error.to_string(),
        };
        match error.fault() {
            Fault::Environment => Self::Environment(message),
            Fault::Input => Self::Input(message),
            Fault::Caller => Self::Usage(message),
            Fault::Interrupted => Self::Interrupted,
        }
    }
}

impl From<gguf_remote::Error> for Failure {
    fn from(error: gguf_remote::Error) -> Self {
        gguf::Error::from(error).into()
    }
}

impl From<gguf_tokenizer::template::Error> for Failure {
    fn from(error: gguf_tokenizer::template::Error) -> Self {
        gguf::Error::from(error).into()
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
