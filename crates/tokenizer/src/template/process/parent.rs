//! Parent process: sends the request and survives a killed child.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{Frame, Request, read_frame};
use crate::template::limits::megabytes;
use crate::template::{Context, Error, Limits, TemplateSource};

/// Interval at which the parent polls for the end of the child.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Renders in a process of `program`, as [`Renderer::render_each`](crate::Renderer::render_each).
pub fn run(
    (program, arguments): (&Path, &[OsString]),
    limits: &Limits,
    source: &TemplateSource,
    contexts: &[Context],
) -> Result<Vec<Frame>, Error> {
    let request =
        Request { limits: *limits, source: Cow::Borrowed(source), contexts: contexts.into() };
    let request = serde_json::to_vec(&request).map_err(broken)?;
    let mut process = ChildProcess::start(program, arguments)?;
    let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
    let (mut input, output) = input.zip(output).ok_or_else(|| broken("it has no pipes"))?;
    let (sender, receiver) = mpsc::channel();
    // A killed process does not read its input: ignore a failed write.
    let write = move || drop(input.write_all(&request));
    // Both threads end with the process, or later if it has started others: do not join them.
    thread::Builder::new().spawn(write).map_err(broken)?;
    let (text_len, frames) = (limits.text_len, 1 + contexts.len());
    let read = move || read_frames(BufReader::new(output), frames, text_len, &sender);
    thread::Builder::new().spawn(read).map_err(broken)?;

    let mut next = || match receiver.recv_timeout(process.remaining(limits)) {
        Ok(frame) => frame,
        Err(RecvTimeoutError::Timeout) => Err(out_of_time(limits)),
        Err(RecvTimeoutError::Disconnected) => Err(process.exit_cause(limits)),
    };
    next()?;
    let mut texts = Vec::new();
    for _ in contexts {
        let text = next();
        if let Err(error @ Error::Process(_)) = text {
            return Err(error);
        }
        let is_last = matches!(text, Err(Error::Limit { .. }));
        texts.push(text);
        if is_last {
            break;
        }
    }
    Ok(texts)
}

/// Sends frames until the output ends; then the exit status has more information.
fn read_frames(mut output: impl BufRead, count: usize, text_len: usize, sender: &Sender<Frame>) {
    for _ in 0..count {
        let frame = match read_frame(&mut output, text_len) {
            Err(fault) if fault.kind() == ErrorKind::UnexpectedEof => break,
            Err(fault) => Err(broken(format!("it sent an invalid response: {fault}"))),
            Ok(frame) => frame,
        };
        if sender.send(frame).is_err() {
            break;
        }
    }
}

/// A process that is killed when this value is dropped.
struct ChildProcess {
    child: Child,
    started: Instant,
}

impl ChildProcess {
    fn start(program: &Path, arguments: &[OsString]) -> Result<Self, Error> {
        let started = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            // Resolving function names takes longer than most templates.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The exit status shows why a process died; its error output is not for users.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|fault| {
                Error::Process(format!("cannot start {}: {fault}", program.display()))
            })?;
        Ok(Self { child, started })
    }

    /// Returns the remaining wall-clock time.
    fn remaining(&self, limits: &Limits) -> Duration {
        limits.time.saturating_sub(self.started.elapsed())
    }

    /// Returns the reason why a process ended without a response.
    fn exit_cause(&mut self, limits: &Limits) -> Error {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return exit_error(status, limits),
                Ok(None) if self.remaining(limits).is_zero() => return out_of_time(limits),
                Ok(None) => thread::sleep(POLL_INTERVAL),
                Err(fault) => return broken(fault),
            }
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Converts an exit status: the system kills a process that exceeds its CPU time, and a process
/// crashes if it runs out of memory or stack.
#[cfg(unix)]
fn exit_error(status: ExitStatus, limits: &Limits) -> Error {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::Signal;

    const CRASHES: [Signal; 6] =
        [Signal::ABORT, Signal::BUS, Signal::ILL, Signal::KILL, Signal::SEGV, Signal::TRAP];
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => {
            Error::limit(format!("{} s of CPU time", limits.cpu.as_secs().max(1)))
        }
        Some(signal) if CRASHES.iter().any(|crash| crash.as_raw() == signal) => {
            Error::limit(format!("{} of memory", megabytes(limits.memory)))
        }
        _ => broken(format!("it ended without a response ({status})")),
    }
}

/// Converts an exit status: crash codes have the highest bit set.
#[cfg(not(unix))]
fn exit_error(status: ExitStatus, limits: &Limits) -> Error {
    if status.code().is_some_and(|code| code < 0) {
        return Error::limit(format!("{} of memory", megabytes(limits.memory)));
    }
    broken(format!("it ended without a response ({status})"))
}

fn out_of_time(limits: &Limits) -> Error {
    Error::limit(format!("{} s", limits.time.as_secs_f64()))
}

fn broken(cause: impl std::fmt::Display) -> Error {
    Error::Process(cause.to_string())
}
