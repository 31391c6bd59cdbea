//! Work that takes long: without the interpreter's lock, on threads, with somebody who looks at it.
//!
//! The threads that work never wait for the interpreter. The thread that called looks ten times a second how far
//! the work is, tells the caller's function, and asks whether Ctrl-C was pressed: exceptions of both come out of
//! the call, after the work has ended in good order.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gguf::Error;
use gguf_kit::Progress;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::raise;

const LOOK: Duration = Duration::from_millis(100);

/// How far the work is, and whether it is to end.
#[derive(Default)]
struct Watch {
    what: Mutex<String>,
    total: AtomicU64,
    done: AtomicU64,
    ended: AtomicBool,
}

impl Progress for Watch {
    fn begin(&self, what: &str, total: u64) {
        what.clone_into(&mut self.what.lock().unwrap_or_else(PoisonError::into_inner));
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        match self.ended.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Watch {
    /// Tells the caller's function; false if it wants the work to end.
    fn tell(&self, py: Python<'_>, told: &Py<PyAny>) -> PyResult<bool> {
        let what = self.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (total, done) = (self.total.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        let answer = told.call1(py, (what, done.min(total.max(done)), total))?;
        Ok(!answer.bind(py).is(&*pyo3::types::PyBool::new(py, false)))
    }

    /// Tells, and asks for signals; `Err` if the work is to end: with what the caller is to get, if not the error
    /// of the work.
    fn look(&self, told: Option<&Py<PyAny>>) -> Result<(), Option<PyErr>> {
        Python::attach(|py| {
            py.check_signals().map_err(Some)?;
            match told.map_or(Ok(true), |told| self.tell(py, told)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(None),
                Err(raised) => Err(Some(raised)),
            }
        })
    }
}

/// How work is to be done.
#[derive(Default)]
pub struct How {
    /// A function of what is done, how much of it is done, and how much it is in all. The work ends when it says
    /// `False` or raises.
    pub progress: Option<Py<PyAny>>,
    /// How many threads; one per core if nobody says.
    pub threads: Option<NonZeroUsize>,
}

/// Does work. The lock is released until it is done.
pub fn run<T: Send>(
    py: Python<'_>,
    how: &How,
    work: impl FnOnce(&dyn Progress) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let watch = Watch::default();
    let mut raised = None;
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let watch = &watch;
            let worker = scope.spawn(move || {
                let _alive = alive;
                on_threads(how.threads, || work(watch))
            });
            // The other end goes when the work is done, also if it panics.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                if watch.ended.load(Ordering::Relaxed) {
                    continue;
                }
                if let Err(why) = watch.look(how.progress.as_ref()) {
                    raised = why;
                    watch.ended.store(true, Ordering::Relaxed);
                }
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    let made = result.map_err(raise)?;
    if let Some(told) = &how.progress {
        watch.tell(py, told)?;
    }
    Ok(made)
}

/// Does short work, that nobody looks at, without the lock.
pub fn quick<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| on_threads(None, work)).map_err(raise)
}

fn on_threads<T: Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    match threads {
        Some(_) => gguf_kit::on_threads(threads, work),
        None => pool()?.install(work),
    }
}

/// One thread per core. A process that forks leaves its threads behind: the child makes its own, and never frees
/// those that it does not have.
fn pool() -> Result<&'static ThreadPool, Error> {
    static POOL: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match *pool {
        Some((of, pool)) if of == process => Ok(pool),
        _ => {
            let failed = |fault| {
                Error::environment("start", "threads".as_ref(), std::io::Error::other(fault))
            };
            let made = &*Box::leak(Box::new(ThreadPoolBuilder::new().build().map_err(failed)?));
            *pool = Some((process, made));
            Ok(made)
        }
    }
}
