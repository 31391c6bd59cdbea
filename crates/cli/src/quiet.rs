//! The `--quiet` flag.
//!
//! The macro `eprintln!` in `lib.rs` consults it.

use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses notes, progress and lists of written files from now on.
pub fn enable() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether `--quiet` is given.
pub fn is_on() -> bool {
    QUIET.load(Ordering::Relaxed)
}
