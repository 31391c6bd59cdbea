//! Number of threads.

use std::num::NonZeroUsize;

use crate::Error;

/// Runs work on a number of threads; `None` uses the current rayon pool, usually one thread per core.
///
/// # Errors
/// Errors of the work; if the threads cannot be started.
pub fn on_threads<T: Send, E: From<Error> + Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    let Some(threads) = threads else { return work() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    let failed =
        |fault| Error::environment("start", "threads".as_ref(), std::io::Error::other(fault));
    pool.map_err(failed)?.install(work)
}
