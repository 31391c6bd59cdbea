//! Progress and cancellation.

use std::ops::ControlFlow;

use gguf::Error;

/// Observer of a long operation, called from many threads, which may cancel it.
///
/// A closure from a number of bytes to [`ControlFlow`] implements it; `()` ignores progress and
/// never cancels.
pub trait Progress: Sync {
    /// An operation on about `total` bytes begins. `what` names it, for example `hashing`.
    fn begin(&self, what: &str, total: u64) {
        let _ = (what, total);
    }

    /// An operation on `total` tokens begins: until the next one begins, progress counts tokens.
    fn begin_tokens(&self, what: &str, total: u64) {
        self.begin(what, total);
    }

    /// `bytes` more bytes are done. `Break` cancels the operation, which then fails with
    /// [`Error::Interrupted`] and leaves no unfinished output.
    fn advance(&self, bytes: u64) -> ControlFlow<()>;
}

impl dyn Progress + '_ {
    /// Calls [`Progress::advance`] and turns `Break` into an error.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the operation is cancelled.
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
