//! Ctrl-C during a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handles Ctrl-C: stops an answer, or exits while waiting for a line of a pipe.
pub struct Interrupt {
    received: Arc<AtomicBool>,
    waiting: Arc<AtomicBool>,
}

impl Interrupt {
    pub fn new() -> Self {
        let this = Self { received: Arc::default(), waiting: Arc::default() };
        // A signal that cannot be caught ends the program.
        let signal = signal_hook::consts::SIGINT;
        let _ = signal_hook::flag::register_conditional_default(signal, this.waiting.clone());
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

    pub fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let result = read();
        self.waiting.store(false, Ordering::Relaxed);
        self.forget();
        result
    }
}
