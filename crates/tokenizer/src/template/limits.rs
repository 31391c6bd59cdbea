//! What a template may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What rendering one template may take.
///
/// Steps and text are counted by the engine, wherever it runs. They say nothing about the size of
/// values and the work of a single filter: 40 steps double a string to a terabyte. These are
/// bounded by the system, which can do so for a whole process only: see
/// [`Renderer::process`](super::Renderer::process).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Steps of the engine for each conversation; a usual one takes some dozens per message.
    pub steps: u64,
    /// Bytes of text for each conversation.
    pub text_len: usize,
    /// Bytes of memory beyond those that the process has when it knows the template and the
    /// conversations; the stack, 64 MB, comes on top. Only on Linux.
    pub memory: u64,
    /// Time of the processor, of which the system counts whole seconds. Only on Unix.
    pub cpu: Duration,
    /// Time by the clock, start of the process included.
    pub time: Duration,
}

/// Two million steps, 64 MB of text, 256 MB of memory, 2 s of the processor, 5 s by the clock.
impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            text_len: 64_000_000,
            memory: 256_000_000,
            cpu: Duration::from_secs(2),
            time: Duration::from_secs(5),
        }
    }
}

/// A number of bytes as messages have it.
pub(super) fn megabytes(len: u64) -> String {
    format!("{} MB", len / 1_000_000)
}
