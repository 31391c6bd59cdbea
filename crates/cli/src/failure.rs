//! Why a command failed, and the exit code that says whose fault it was.

use std::borrow::Cow;
use std::io;

use gguf::{Error, Fault};
use gguf_check::codes;
use gguf_kit::json::{REPLACE, whose};
use serde_json::{Value as Json, json};

use crate::terminal;

/// The exit codes, and what each says.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (1, "the input is at fault"),
    (2, "wrong usage (also an output that exists)"),
    (3, "the environment (cannot read or write, disk full)"),
    (130, "interrupted"),
];

/// A failed command.
pub enum Failure {
    /// A library says no.
    Failed(Box<Error>),
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
    /// Says it to people.
    pub fn say(&self) {
        if let Some(message) = self.message() {
            terminal::error(&message, self.help());
        }
    }

    /// The same in one line, as old programs say it.
    pub fn in_one_line(&self) -> Option<String> {
        let message = self.message()?;
        Some(self.help().map_or(message.to_string(), |help| format!("{message}; {help}")))
    }

    /// What is wrong, in one line without what to do about it.
    pub fn message(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Failed(error) => Some(match &**error {
                Error::InFile { path, finding } => {
                    format!("{}: {}", path.display(), finding.without_help()).into()
                }
                error => match error.finding() {
                    Some(finding) => finding.without_help().to_string().into(),
                    None => error.to_string().into(),
                },
            }),
            Self::Input(message) | Self::Usage(message) | Self::Environment(message) => {
                Some(message.into())
            }
            Self::Interrupted => Some("interrupted; nothing was left behind".into()),
            Self::Paused => Some("interrupted; what is done stays: go on with --resume".into()),
            Self::Findings | Self::Said(_) | Self::ClosedPipe => None,
        }
    }

    /// What to do about it, where that is known.
    fn help(&self) -> Option<&str> {
        let Self::Failed(error) = self else { return None };
        match (&**error, error.finding()) {
            (Error::Exists(_), _) => Some(REPLACE),
            (_, Some(finding)) => Some(&*finding.help).filter(|help| !help.is_empty()),
            _ => None,
        }
    }

    /// Whose fault it is; `None` where nothing failed, or findings say it.
    fn fault(&self) -> Option<Fault> {
        match self {
            Self::Failed(error) => Some(error.fault()),
            Self::Input(_) => Some(Fault::Input),
            Self::Usage(_) => Some(Fault::Caller),
            Self::Environment(_) => Some(Fault::Environment),
            Self::Interrupted | Self::Paused => Some(Fault::Interrupted),
            Self::Findings | Self::Said(_) | Self::ClosedPipe => None,
        }
    }

    /// 1 the input, 2 the request, 3 the environment, 130 interrupted, as shells have it.
    pub fn exit_code(&self) -> u8 {
        match (self, self.fault()) {
            (Self::Said(code), _) => *code,
            (Self::Findings, _) | (_, Some(Fault::Input)) => 1,
            (_, Some(Fault::Caller)) => 2,
            (_, Some(Fault::Environment)) => 3,
            (_, Some(Fault::Interrupted)) => 130,
            (_, None) => 0,
        }
    }

    /// The error for programs: what, whose fault, where, which, and what to do next.
    pub fn to_json(&self) -> Option<Json> {
        let error = match self {
            Self::Failed(error) => Some(gguf_kit::json::error(error)),
            _ => None,
        };
        let fault = self.fault()?;
        let code = match fault {
            Fault::Caller => "usage",
            other => whose(other),
        };
        let mut error = match error {
            Some(error) => error,
            None => json!({
                "code": code,
                "fault": whose(fault),
                "message": self.message()?,
                "file": null,
                "offset": null,
                "key": null,
                "tensor": null,
                "help": codes::code(code).map_or("", |row| row.advice),
            }),
        };
        error["exit_code"] = self.exit_code().into();
        Some(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::Interrupted,
            error => Self::Failed(Box::new(error)),
        }
    }
}

/// A command line that cannot be understood: what clap says of it, without its usage.
impl From<&clap::Error> for Failure {
    fn from(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let before_usage = text.split("\n\nUsage:").next().unwrap_or_default();
        let before_usage =
            before_usage.split("\n\nFor more information").next().unwrap_or_default();
        let words: Vec<&str> = before_usage.split_whitespace().collect();
        Self::Usage(words.join(" ").trim_start_matches("error: ").to_owned())
    }
}

impl From<gguf_remote::Error> for Failure {
    fn from(error: gguf_remote::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<gguf_tokenizer::template::Error> for Failure {
    fn from(error: gguf_tokenizer::template::Error) -> Self {
        Error::from(error).into()
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
