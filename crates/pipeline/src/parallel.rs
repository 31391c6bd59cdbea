//! The same work on many things, on several threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gguf::Error;

/// What `work` makes of 0, 1, ... up to `count`, in order.
///
/// # Errors
/// Of those that occur, the one of the least number; no more work begins after it.
pub fn map<T: Send>(
    count: usize,
    threads: NonZeroUsize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T, Error>>>> =
        Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(count) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    let result = work(i);
                    if result.is_err() {
                        next.store(count, Ordering::Relaxed);
                    }
                    // A poisoned lock means that a thread has panicked, which the scope passes on.
                    let Ok(mut results) = results.lock() else { return };
                    results[i] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    // Things are taken in order: those that nobody took come after one that failed.
    results.into_iter().flatten().collect()
}
