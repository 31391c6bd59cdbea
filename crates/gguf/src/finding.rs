//! Findings: reports of the rules about a file.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Harmless or unusual; needs no action.
    Note,
    /// Readable, but some loaders reject the file or misinterpret it.
    Warning,
    /// Violates the format, so that a strict reader rejects the file; or makes a model that can be
    /// read and repaired, but that loaders reject or run incorrectly.
    Error,
}

impl Severity {
    /// Returns `note`, `warning` or `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Report of one fault: its code, severity, place and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable code of the fault, such as `tensor-offset-misaligned`. `gguf check --explain` lists
    /// all codes.
    pub code: &'static str,
    /// Severity of the fault.
    pub severity: Severity,
    /// Byte offset in the file; `None` for a header that is not in a file.
    pub offset: Option<u64>,
    /// Affected key.
    pub key: Option<Box<str>>,
    /// Affected tensor.
    pub tensor: Option<Box<str>>,
    /// Fault, in one sentence without a full stop.
    pub message: Box<str>,
    /// Advice; may be empty.
    pub help: Cow<'static, str>,
}

impl Finding {
    /// Returns an error with this code and message.
    pub fn error(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Returns a warning with this code and message.
    pub fn warning(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Returns a note with this code and message.
    pub fn note(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            code,
            severity,
            offset: None,
            key: None,
            tensor: None,
            message: message.into(),
            help: Cow::Borrowed(""),
        }
    }

    /// Sets the byte offset.
    pub fn at(mut self, offset: impl Into<Option<u64>>) -> Self {
        self.offset = offset.into();
        self
    }

    /// Sets the key.
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the tensor.
    pub fn tensor(mut self, tensor: impl Into<Box<str>>) -> Self {
        self.tensor = Some(tensor.into());
        self
    }

    /// Sets the advice.
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = help.into();
        self
    }
}

impl Finding {
    /// Formats the finding without its advice, which can be shown on a separate line.
    pub fn without_help(&self) -> impl fmt::Display {
        fmt::from_fn(|f| self.write(f))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "key `{}`: ", shortened(key))?;
        }
        if let Some(tensor) = &self.tensor {
            write!(f, "tensor `{}`: ", shortened(tensor))?;
        }
        f.write_str(&self.message)?;
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

/// Names in broken files can be as long as the file.
fn shortened(name: &str) -> String {
    const SHOWN: usize = 80;
    let start: String = name.chars().take(SHOWN).collect();
    if start.len() == name.len() { start } else { start + "..." }
}

/// Receiver of findings.
pub trait Sink {
    /// Receives a finding. `Break` stops the rules.
    fn report(&mut self, finding: Finding) -> ControlFlow<()>;
}

/// Collects findings, up to 100 per code, so that a broken file cannot produce an endless list.
#[derive(Debug, Default)]
pub struct Collector {
    findings: Vec<Finding>,
    counts: std::collections::BTreeMap<&'static str, (Severity, u64)>,
}

impl Collector {
    const PER_CODE: u64 = 100;

    /// Returns an empty collector.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the findings in the order of their report. For a code with more findings than were
    /// collected, one more finding says how many were dropped.
    pub fn into_findings(mut self) -> Vec<Finding> {
        for (code, (severity, count)) in self.counts {
            if count > Self::PER_CODE {
                let more = format!("found {} times more", count - Self::PER_CODE);
                self.findings.push(Finding::new(severity, code, more));
            }
        }
        self.findings
    }
}

impl Sink for Collector {
    fn report(&mut self, finding: Finding) -> ControlFlow<()> {
        let (_, count) = self.counts.entry(finding.code).or_insert((finding.severity, 0));
        *count += 1;
        if *count <= Self::PER_CODE {
            self.findings.push(finding);
        }
        ControlFlow::Continue(())
    }
}

/// Stops at the first error and ignores other findings.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    /// Error that stopped the rules.
    pub error: Option<Finding>,
}

impl Sink for Strict {
    fn report(&mut self, finding: Finding) -> ControlFlow<()> {
        if finding.severity < Severity::Error {
            return ControlFlow::Continue(());
        }
        self.error = Some(finding);
        ControlFlow::Break(())
    }
}
