//! Number of threads of a command.

use std::num::NonZeroUsize;

use gguf_kit::Error;

use crate::terminal;

/// Runs work on a number of threads, as [`gguf_kit::on_threads`] does, and says so if it starts fewer than requested.
///
/// # Errors
/// As [`gguf_kit::on_threads`].
pub fn on_threads<T: Send, E: From<Error> + Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    if let Some(requested) = threads {
        let usable = gguf_kit::usable_threads(requested);
        if usable < requested {
            terminal::note(format!(
                "uses {usable} threads instead of {requested}: more are slower"
            ));
        }
    }
    gguf_kit::on_threads(threads, work)
}
