//! Cancellation and observation of a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use gguf::Error;
use gguf_store::Progress;

use crate::observer::Observer;

/// Milliseconds between two calls of the progress callback: a run stops soon, and the calls cost nothing.
const INTERVAL: u64 = 50;

/// Polls for cancellation, from all threads of a run.
pub(crate) struct Watch<'r> {
    progress: &'r dyn Progress,
    pub observer: Option<&'r dyn Observer>,
    start: Instant,
    /// Milliseconds from the start to the last poll.
    polled: AtomicU64,
    cancelled: AtomicBool,
}

impl<'r> Watch<'r> {
    pub fn new(progress: &'r dyn Progress) -> Self {
        Self {
            progress,
            observer: None,
            start: Instant::now(),
            polled: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Returns the watch with an observer.
    pub fn observed(self, observer: &'r dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Whether the caller cancelled the run, so that results need not be complete.
    pub fn cancelled(&self) -> bool {
        if self.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        let now = self.start.elapsed().as_millis() as u64;
        let polled = self.polled.load(Ordering::Relaxed);
        let relaxed = Ordering::Relaxed;
        if now < polled + INTERVAL
            || self.polled.compare_exchange(polled, now, relaxed, relaxed).is_err()
        {
            return false;
        }
        self.poll()
    }

    /// Polls at once.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the caller cancelled the run.
    pub fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) || self.poll() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    fn poll(&self) -> bool {
        let cancelled = self.progress.advance(0).is_break();
        if cancelled {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        cancelled
    }
}
