//! Work that requests cause: on threads of its own, a bounded number at a time, and ended when nobody waits for it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use tokio::sync::Semaphore;

use crate::answer::{Answered, Failure};

/// How many requests are worked on at a time.
pub const AT_ONCE: usize = 16;

/// Threads that read far files: they wait more than they compute.
const FAR_THREADS: usize = 16;

/// Who lets work begin.
pub struct Work {
    turns: Semaphore,
    far: Option<ThreadPool>,
}

/// Whether somebody still waits for a piece of work.
#[derive(Clone)]
pub struct Waiting(Arc<AtomicBool>);

impl gguf_kit::Progress for Waiting {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// Ends the work when it is dropped: with the request, if whoever sent it is gone.
struct Gone(Waiting);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Work {
    /// Threads for far files are there if there are some.
    pub fn new(far: bool) -> Self {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(FAR_THREADS).build().ok();
        Self { turns: Semaphore::new(AT_ONCE), far: far.then(pool).flatten() }
    }

    /// Does a piece of work when it is its turn.
    pub async fn run(&self, work: impl FnOnce(&Waiting) -> Answered + Send + 'static) -> Answered {
        let ended = |_| Failure::broken("the server is stopping");
        let _turn = self.turns.acquire().await.map_err(ended)?;
        let waiting = Waiting(Arc::new(AtomicBool::new(true)));
        let _gone = Gone(waiting.clone());
        let done = tokio::task::spawn_blocking(move || work(&waiting)).await;
        done.unwrap_or_else(|_| {
            Err(Failure::broken("the request could not be worked on to its end"))
        })
    }

    /// Computes on the threads for near or for far files.
    pub fn on_threads<T: Send>(&self, far: bool, work: impl FnOnce() -> T + Send) -> T {
        match &self.far {
            Some(pool) if far => pool.install(work),
            _ => work(),
        }
    }
}
