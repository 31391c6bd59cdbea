//! Number of threads.

use std::num::NonZeroUsize;

use crate::Error;

/// Largest number of threads per core that work starts: more threads only wait for each other.
const MOST_PER_CORE: usize = 4;

/// Returns the number of threads that [`on_threads`] starts for a requested number: at most four per core.
pub fn usable_threads(requested: NonZeroUsize) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    requested.min(cores.saturating_mul(NonZeroUsize::MIN.saturating_add(MOST_PER_CORE - 1)))
}

/// Runs work on a number of threads, which [`usable_threads`] limits; `None` uses the current rayon pool, usually one
/// thread per core.
///
/// # Errors
/// Errors of the work; if the threads cannot be started.
pub fn on_threads<T: Send, E: From<Error> + Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    let Some(threads) = threads else { return work() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(usable_threads(threads).get()).build();
    let failed =
        |fault| Error::environment("start", "threads".as_ref(), std::io::Error::other(fault));
    pool.map_err(failed)?.install(work)
}
