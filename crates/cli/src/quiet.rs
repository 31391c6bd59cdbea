//! `--quiet`: nothing is said but what was asked for, and errors.
//!
//! `main.rs` lets every `eprintln!` of the commands ask here.

use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Notes, progress and what was written are left out from here on.
pub fn begin() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether they are.
pub fn is_on() -> bool {
    QUIET.load(Ordering::Relaxed)
}
