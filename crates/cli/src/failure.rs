//! Failures of commands and their exit codes.

use std::borrow::Cow;
use std::io;

use gguf::{Error, Fault};
use gguf_check::codes;
use gguf_kit::json::{REPLACE, whose};
use serde_json::{Value as Json, json};

use crate::terminal;

/// Exit codes with their meanings.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success"),
    (1, "invalid input, or findings of `check`, `diff`, `verify` or `name`"),
    (2, "invalid usage (including an existing output without --force)"),
    (3, "environment (I/O error, disk full, network)"),
    (130, "interrupted"),
];

/// A failed command.
pub enum Failure {
    /// An error of a library.
    Failed(Box<Error>),
    /// Invalid input.
    Input(String),
    /// The input has findings of severity error, already printed.
    Findings,
    /// Some of several sources failed, as already reported; holds the exit code of the first failure.
    Reported(u8),
    /// Invalid usage.
    Usage(String),
    /// A command line that the argument parser refuses, and its tip.
    CommandLine { message: String, tip: Option<String> },
    /// I/O error or missing resource.
    Environment(String),
    /// Interrupted by a signal.
    Interrupted,
    /// Interrupted, with saved progress that `--resume` continues.
    Paused,
    /// The reader closed the output pipe.
    ClosedPipe,
}

impl Failure {
    /// Prints the message and the help to standard error.
    pub fn print(&self) {
        if let Some(message) = self.message() {
            terminal::error(&message, self.help());
        }
    }

    /// Returns message and help as one line, as the original programs print errors.
    pub fn in_one_line(&self) -> Option<String> {
        let message = self.message()?;
        Some(self.help().map_or(message.to_string(), |help| format!("{message}; {help}")))
    }

    /// Returns the message without the help.
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
            Self::Input(message)
            | Self::Usage(message)
            | Self::CommandLine { message, .. }
            | Self::Environment(message) => Some(message.into()),
            Self::Interrupted => Some("interrupted; all incomplete files were removed".into()),
            Self::Paused => Some("interrupted; progress is saved: continue with --resume".into()),
            Self::Findings | Self::Reported(_) | Self::ClosedPipe => None,
        }
    }

    /// Returns the advice, if any.
    fn help(&self) -> Option<&str> {
        let error = match self {
            Self::Failed(error) => error,
            Self::CommandLine { tip, .. } => return tip.as_deref(),
            _ => return None,
        };
        match (&**error, error.finding()) {
            (Error::Exists(_), _) => Some(REPLACE),
            (_, Some(finding)) => Some(&*finding.help).filter(|help| !help.is_empty()),
            _ => None,
        }
    }

    /// Returns who is at fault; `None` if nothing failed or findings were already printed.
    fn fault(&self) -> Option<Fault> {
        match self {
            Self::Failed(error) => Some(error.fault()),
            Self::Input(_) => Some(Fault::Input),
            Self::Usage(_) | Self::CommandLine { .. } => Some(Fault::Caller),
            Self::Environment(_) => Some(Fault::Environment),
            Self::Interrupted | Self::Paused => Some(Fault::Interrupted),
            Self::Findings | Self::Reported(_) | Self::ClosedPipe => None,
        }
    }

    /// Returns the exit code: 1 input, 2 usage, 3 environment, 130 interrupted (the convention of shells).
    pub fn exit_code(&self) -> u8 {
        match (self, self.fault()) {
            (Self::Reported(code), _) => *code,
            (Self::Findings, _) | (_, Some(Fault::Input)) => 1,
            (_, Some(Fault::Caller)) => 2,
            (_, Some(Fault::Environment)) => 3,
            (_, Some(Fault::Interrupted)) => 130,
            (_, None) => 0,
        }
    }

    /// Returns the error as JSON: message, fault, location, code and advice.
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
                "help": self.help().or_else(|| codes::code(code).map(|row| row.advice)),
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

/// Converts an error of the argument parser, without its usage lines.
impl From<&clap::Error> for Failure {
    fn from(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let before_usage = text.split("\n\nUsage:").next().unwrap_or_default();
        let before_usage =
            before_usage.split("\n\nFor more information").next().unwrap_or_default();
        let mut parts = before_usage.trim_start_matches("error: ").split("\n\n  tip: ");
        let message = parts.next().unwrap_or_default().trim_end().to_owned();
        let tips: Vec<&str> = parts.map(str::trim).collect();
        Self::CommandLine { message, tip: (!tips.is_empty()).then(|| tips.join("\n")) }
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

/// Converts an I/O error of printing; other I/O errors are library errors.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Environment(format!("cannot write the output: {error}")),
        }
    }
}
