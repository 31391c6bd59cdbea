//! The same work on many things, in order, on all threads of the current rayon pool.
//!
//! The number of threads is nobody's business but the caller's, who installs a pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use gguf::Error;

/// What `work` makes of 0, 1, ... up to `count`, in order.
///
/// # Errors
/// As `map_with`.
pub fn map<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    map_with(count, || (), |(), i| work(i))
}

/// The same with a state for each thread, such as its buffers.
///
/// # Errors
/// Of those that occur, the one of the least number; no more work begins after it.
pub(crate) fn map_with<S, T: Send>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let of_threads = rayon::broadcast(|_| {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return done;
            }
            let result = work(&mut state, i);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            done.push((i, result));
        }
    });
    let mut all: Vec<_> = of_threads.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(i, _)| *i);
    // Things are taken in order: those that nobody took come after one that failed.
    all.into_iter().map(|(_, result)| result).collect()
}
