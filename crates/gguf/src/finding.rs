//! Findings: what the rules say about a file.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, nothing to do.
    Info,
    /// Readable, but some programs will refuse it or treat it wrongly.
    Warning,
    /// Breaks the format, which a strict reader refuses and nobody writes; or makes a model that can
    /// be read and mended, but that no program runs, or none runs rightly.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing that a rule found: what, where, which, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the kind of fault, such as `tensor-offset-misaligned`. `gguf check --explain` has
    /// all of them.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Byte offset in the file; `None` for a header that is not in a file.
    pub offset: Option<u64>,
    /// The key concerned.
    pub key: Option<Box<str>>,
    /// The tensor concerned.
    pub tensor: Option<Box<str>>,
    /// What is wrong, in one sentence without a full stop.
    pub message: Box<str>,
    /// What to do about it; may be empty.
    pub help: Cow<'static, str>,
}

impl Finding {
    /// An error with this code and message, not yet placed.
    pub fn error(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning with this code and message, not yet placed.
    pub fn warning(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// An information with this code and message, not yet placed.
    pub fn info(code: &'static str, message: impl Into<Box<str>>) -> Self {
        Self::new(Severity::Info, code, message)
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

    /// Says where in the file.
    pub fn at(mut self, offset: impl Into<Option<u64>>) -> Self {
        self.offset = offset.into();
        self
    }

    /// Says which key.
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Says which tensor.
    pub fn tensor(mut self, tensor: impl Into<Box<str>>) -> Self {
        self.tensor = Some(tensor.into());
        self
    }

    /// Says what to do.
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = help.into();
        self
    }
}

impl Finding {
    /// The finding without its help, which can then be shown on a line of its own.
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

/// Collects findings, up to 100 per code, so that a broken file cannot make the list endless.
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

/// Stops at the first error; forgets the rest.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    /// The error that stopped the rules.
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
