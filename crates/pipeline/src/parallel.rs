//! Ordered parallel maps on the current rayon pool.
//!
//! The caller chooses the number of threads by installing a pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use gguf::Error;

/// Returns the results of `work` for 0, 1, ... up to `count`, in order.
///
/// # Errors
/// See `map_with`.
pub fn map<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    map_with(count, || (), |(), i| work(i))
}

/// Maps like [`map`], with a state per thread such as its buffers.
///
/// # Errors
/// Returns the error with the smallest index; no further work starts after an error.
pub(crate) fn map_with<S, T: Send>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let results = rayon::broadcast(|_| {
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
    let mut all: Vec<_> = results.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(i, _)| *i);
    // Items are started in order, so unstarted items follow the one that failed.
    all.into_iter().map(|(_, result)| result).collect()
}
