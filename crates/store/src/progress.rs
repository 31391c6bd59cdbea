//! How far work has come, and the end of work that somebody does not want any more.

use std::ops::ControlFlow;

use gguf::Error;

/// Is told how far work has come, from many threads, and may end it.
///
/// A closure from bytes to [`ControlFlow`] is one; `()` is one that neither looks nor ends.
pub trait Progress: Sync {
    /// Work of about `total` bytes begins. `what` says which, such as `hashing`.
    fn begin(&self, what: &str, total: u64) {
        let _ = (what, total);
    }

    /// So many bytes more are done. `Break` ends the work, which then fails with
    /// [`Error::Interrupted`] and leaves nothing unfinished behind.
    fn advance(&self, bytes: u64) -> ControlFlow<()>;
}

impl dyn Progress + '_ {
    /// As [`Progress::advance`].
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the work is to end.
    pub fn step(&self, bytes: u64) -> Result<(), Error> {
        match self.advance(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }
}

impl Progress for () {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: Fn(u64) -> ControlFlow<()> + Sync> Progress for F {
    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self(bytes)
    }
}
