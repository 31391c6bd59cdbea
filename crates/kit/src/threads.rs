//! How many threads work gets.

use std::num::NonZeroUsize;

use crate::Error;

/// Does work on so many threads; on those of the current rayon pool, usually one per core, if there
/// is no number.
///
/// # Errors
/// Those of the work, and if the threads cannot be had.
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
