//! The side that asks, and outlives whatever the template does.

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
use crate::template::{Context, Error, Limits, Source};

/// How often a process that is about to end is asked whether it has.
const PAUSE: Duration = Duration::from_millis(1);

/// As [`Renderer::render_each`](crate::Renderer::render_each), in a process of `program`.
pub fn run(
    (program, arguments): (&Path, &[OsString]),
    limits: &Limits,
    source: &Source,
    contexts: &[Context],
) -> Result<Vec<Frame>, Error> {
    let request =
        Request { limits: *limits, source: Cow::Borrowed(source), contexts: contexts.into() };
    let request = serde_json::to_vec(&request).map_err(broken)?;
    let mut process = Process::start(program, arguments)?;
    let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
    let (mut input, output) = input.zip(output).ok_or_else(|| broken("it has no pipes"))?;
    let (sender, receiver) = mpsc::channel();
    // A process that is dying does not read: what is not written then is not missed.
    let write = move || drop(input.write_all(&request));
    // Both threads end with the process, or later where it has started others: nobody waits.
    thread::Builder::new().spawn(write).map_err(broken)?;
    let (text_len, frames) = (limits.text_len, 1 + contexts.len());
    let read = move || read_frames(BufReader::new(output), frames, text_len, &sender);
    thread::Builder::new().spawn(read).map_err(broken)?;

    let mut next = || match receiver.recv_timeout(process.remaining(limits)) {
        Ok(frame) => frame,
        Err(RecvTimeoutError::Timeout) => Err(out_of_time(limits)),
        Err(RecvTimeoutError::Disconnected) => Err(process.why_it_ended(limits)),
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

/// Hands on as many frames, until the output ends: then how the process ended says more.
fn read_frames(mut output: impl BufRead, count: usize, text_len: usize, sender: &Sender<Frame>) {
    for _ in 0..count {
        let frame = match read_frame(&mut output, text_len) {
            Err(fault) if fault.kind() == ErrorKind::UnexpectedEof => break,
            Err(fault) => Err(broken(format!("it answers in another way: {fault}"))),
            Ok(frame) => frame,
        };
        if sender.send(frame).is_err() {
            break;
        }
    }
}

/// A process that does not outlive this value.
struct Process {
    child: Child,
    started: Instant,
}

impl Process {
    fn start(program: &Path, arguments: &[OsString]) -> Result<Self, Error> {
        let started = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            // To look for names of functions takes longer than most templates.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // How a process dies shows in its status; its last words are not for users.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|fault| {
                Error::Process(format!("cannot start {}: {fault}", program.display()))
            })?;
        Ok(Self { child, started })
    }

    /// How long it may still take.
    fn remaining(&self, limits: &Limits) -> Duration {
        limits.time.saturating_sub(self.started.elapsed())
    }

    /// Why a process ended that owes an answer.
    fn why_it_ended(&mut self, limits: &Limits) -> Error {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return cause_of_death(status, limits),
                Ok(None) if self.remaining(limits).is_zero() => return out_of_time(limits),
                Ok(None) => thread::sleep(PAUSE),
                Err(fault) => return broken(fault),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process is ended by the system for its time, and ends itself where it gets no more memory or
/// has no more stack.
#[cfg(unix)]
fn cause_of_death(status: ExitStatus, limits: &Limits) -> Error {
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::Signal;

    const CRASHES: [Signal; 6] =
        [Signal::ABORT, Signal::BUS, Signal::ILL, Signal::KILL, Signal::SEGV, Signal::TRAP];
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => {
            Error::limit(format!("{} s of the processor", limits.cpu.as_secs().max(1)))
        }
        Some(signal) if CRASHES.iter().any(|crash| crash.as_raw() == signal) => {
            Error::limit(format!("{} of memory", megabytes(limits.memory)))
        }
        _ => broken(format!("it ended without an answer ({status})")),
    }
}

/// Codes of crashes have the highest bit set.
#[cfg(not(unix))]
fn cause_of_death(status: ExitStatus, limits: &Limits) -> Error {
    if status.code().is_some_and(|code| code < 0) {
        return Error::limit(format!("{} of memory", megabytes(limits.memory)));
    }
    broken(format!("it ended without an answer ({status})"))
}

fn out_of_time(limits: &Limits) -> Error {
    Error::limit(format!("{} s", limits.time.as_secs_f64()))
}

fn broken(cause: impl std::fmt::Display) -> Error {
    Error::Process(cause.to_string())
}
