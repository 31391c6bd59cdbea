//! Who waits for a run: whether it is still wanted, asked by all threads in the midst of an operation,
//! and who looks on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use gguf::Error;
use gguf_store::Progress;

use crate::observer::Observer;

/// Milliseconds between two questions: work ends soon, and asking costs nothing.
const PAUSE: u64 = 50;

/// Asks now and then whether to go on.
pub(crate) struct Watch<'r> {
    progress: &'r dyn Progress,
    /// Who looks on.
    pub observer: Option<&'r dyn Observer>,
    began: Instant,
    /// Milliseconds from the beginning to the last question.
    asked: AtomicU64,
    ended: AtomicBool,
}

impl<'r> Watch<'r> {
    pub fn new(progress: &'r dyn Progress) -> Self {
        Self {
            progress,
            observer: None,
            began: Instant::now(),
            asked: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// With somebody who looks on.
    pub fn observed(self, observer: &'r dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Whether nobody wants the result any more: then what is computed may be left as it is.
    pub fn ended(&self) -> bool {
        if self.ended.load(Ordering::Relaxed) {
            return true;
        }
        let now = self.began.elapsed().as_millis() as u64;
        let asked = self.asked.load(Ordering::Relaxed);
        let relaxed = Ordering::Relaxed;
        if now < asked + PAUSE || self.asked.compare_exchange(asked, now, relaxed, relaxed).is_err()
        {
            return false;
        }
        self.ask()
    }

    /// Asks at once.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if nobody wants the result any more.
    pub fn require(&self) -> Result<(), Error> {
        if self.ended.load(Ordering::Relaxed) || self.ask() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    fn ask(&self) -> bool {
        let ended = self.progress.advance(0).is_break();
        if ended {
            self.ended.store(true, Ordering::Relaxed);
        }
        ended
    }
}
