//! What becomes of work that somebody wants to end.

use std::ops::ControlFlow;

use gguf::Error;

/// Told the number of bytes just worked on, perhaps from many threads; `Break` ends the work.
pub type Progress<'p> = &'p (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Another `bytes` are done.
///
/// # Errors
/// [`Error::Interrupted`] if the work is to end.
pub(crate) fn done(progress: Progress, bytes: u64) -> Result<(), Error> {
    match progress(bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}
