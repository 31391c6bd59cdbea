//! Resource limits of templates.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Resource limits for rendering one template.
///
/// The engine always limits steps and output. A step pays for 256 bytes that are read or written,
/// so that two million steps bound memory to about a gigabyte and time to about a minute. The
/// operating system sets tighter bounds on memory and time, but only for a whole process: see
/// [`Renderer::process`](super::Renderer::process).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Engine steps per conversation; a typical one takes some dozens per message.
    pub steps: u64,
    /// Bytes of output per conversation.
    pub text_len: usize,
    /// Bytes of memory beyond those of the process when it has read the template and the
    /// conversations; the stack of 64 MB is added. Linux only.
    pub memory: u64,
    /// CPU time, rounded up to whole seconds. Unix only.
    pub cpu: Duration,
    /// Wall-clock time, including the start of the process.
    pub time: Duration,
}

/// Two million steps, 64 MB of output, 256 MB of memory, 2 s of CPU time, 5 s of wall-clock time.
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

/// Formats a number of bytes for messages.
pub(super) fn megabytes(len: u64) -> String {
    format!("{} MB", len / 1_000_000)
}
