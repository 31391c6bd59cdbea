//! Work that requests cause: on threads of its own, a bounded number at a time, and ended when nobody waits for it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use crate::answer::{Answered, Failure};

/// How many requests are worked on at a time. Far files are waited for, not computed.
pub const AT_ONCE: usize = 16;

/// Who lets work begin.
pub struct Work(Semaphore);

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
    /// Nothing yet.
    pub fn new() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }

    /// Does a piece of work when it is its turn.
    pub async fn run(&self, work: impl FnOnce(&Waiting) -> Answered + Send + 'static) -> Answered {
        let ended = |_| Failure::broken("the server is stopping");
        let _turn = self.0.acquire().await.map_err(ended)?;
        let waiting = Waiting(Arc::new(AtomicBool::new(true)));
        let _gone = Gone(waiting.clone());
        let done = tokio::task::spawn_blocking(move || work(&waiting)).await;
        done.unwrap_or_else(|_| Err(Failure::broken("the request could not be worked on to its end")))
    }
}
