//! Long tasks: they run on worker threads with the GIL released, with progress and cancellation.
//!
//! Workers never wait for the interpreter. The calling thread polls ten times per second: it calls the progress
//! callback and checks for Ctrl-C. An exception of either cancels the task and is raised after the task has cleaned up.

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

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Progress and cancellation of a task.
#[derive(Default)]
struct Monitor {
    what: Mutex<String>,
    total: AtomicU64,
    done: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress for Monitor {
    fn begin(&self, what: &str, total: u64) {
        what.clone_into(&mut self.what.lock().unwrap_or_else(PoisonError::into_inner));
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        match self.cancelled.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Monitor {
    /// Calls the progress callback. Returns false if the callback cancels the task.
    fn report(&self, py: Python<'_>, callback: &Py<PyAny>) -> PyResult<bool> {
        let what = self.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (total, done) = (self.total.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        let answer = callback.call1(py, (what, done.min(total.max(done)), total))?;
        Ok(!answer.bind(py).is(&*pyo3::types::PyBool::new(py, false)))
    }

    /// Reports progress and checks for signals. `Err` cancels the task, with an exception to raise if there is one.
    fn poll(&self, callback: Option<&Py<PyAny>>) -> Result<(), Option<PyErr>> {
        Python::attach(|py| {
            py.check_signals().map_err(Some)?;
            match callback.map_or(Ok(true), |callback| self.report(py, callback)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(None),
                Err(raised) => Err(Some(raised)),
            }
        })
    }
}

/// Options of a task.
#[derive(Default)]
pub struct TaskOptions {
    /// Callback of the step, the completed amount and the total. It cancels the task by returning `False` or raising.
    pub progress: Option<Py<PyAny>>,
    /// Number of threads; one per core by default.
    pub threads: Option<NonZeroUsize>,
}

/// Runs a task with the GIL released.
pub fn run<T: Send>(
    py: Python<'_>,
    options: &TaskOptions,
    task: impl FnOnce(&dyn Progress) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let monitor = Monitor::default();
    let mut raised = None;
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let monitor = &monitor;
            let worker = scope.spawn(move || {
                let _alive = alive;
                on_threads(options.threads, || task(monitor))
            });
            // The channel closes when the task ends or panics.
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(POLL_INTERVAL) {
                if monitor.cancelled.load(Ordering::Relaxed) {
                    continue;
                }
                if let Err(exception) = monitor.poll(options.progress.as_ref()) {
                    raised = exception;
                    monitor.cancelled.store(true, Ordering::Relaxed);
                }
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    let output = result.map_err(raise)?;
    if let Some(callback) = &options.progress {
        monitor.report(py, callback)?;
    }
    Ok(output)
}

/// Runs a short task with the GIL released, without progress and cancellation.
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

/// Returns the thread pool with one thread per core. A forked child has no threads of its parent, so it creates its own
/// pool and leaks the handle of the inherited one.
fn pool() -> Result<&'static ThreadPool, Error> {
    static POOL: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match *pool {
        Some((owner, pool)) if owner == process => Ok(pool),
        _ => {
            let failed = |error| {
                Error::environment("start", "threads".as_ref(), std::io::Error::other(error))
            };
            let new = &*Box::leak(Box::new(ThreadPoolBuilder::new().build().map_err(failed)?));
            *pool = Some((process, new));
            Ok(new)
        }
    }
}
