//! Ctrl-C during a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handles Ctrl-C: stops an answer, or exits while waiting for a line of a pipe.
pub struct Interrupt {
    received: Arc<AtomicBool>,
    waiting: Arc<AtomicBool>,
    leaving: Arc<AtomicBool>,
}

impl Interrupt {
    pub fn new() -> Self {
        let this =
            Self { received: Arc::default(), waiting: Arc::default(), leaving: Arc::default() };
        // A signal that cannot be caught ends the program.
        let signal = signal_hook::consts::SIGINT;
        let _ = signal_hook::flag::register_conditional_default(signal, this.waiting.clone());
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 0, this.leaving.clone());
        let _ = signal_hook::flag::register(signal, this.received.clone());
        this
    }

    /// Whether Ctrl-C was pressed during this answer.
    pub fn received(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    pub fn forget(&self) {
        self.received.store(false, Ordering::Relaxed);
    }

    /// Edits a line after a first Ctrl-C. A second one is a key for the editor, but until the editor has the terminal it
    /// is a signal, which exits the program. Returns `None` if the signal came earlier.
    pub fn while_leaving<T>(&self, edit: impl FnOnce() -> T) -> Option<T> {
        self.leaving.store(true, Ordering::SeqCst);
        if self.received() {
            return None;
        }
        let result = edit();
        self.leaving.store(false, Ordering::SeqCst);
        Some(result)
    }

    pub fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let result = read();
        self.waiting.store(false, Ordering::Relaxed);
        self.forget();
        result
    }
}
