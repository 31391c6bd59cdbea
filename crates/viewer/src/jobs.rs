//! Runs the work of requests on blocking threads: a bounded number at a time, cancelled when the client disconnects.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use tokio::sync::Semaphore;

use crate::response::{ApiError, ApiResult};

/// Maximum number of requests processed at the same time.
pub const MAX_CONCURRENT: usize = 16;

/// Maximum number of graphs that are built and drawn at the same time: a stored graph may take long to read, and must
/// not keep other requests waiting.
const MAX_GRAPHS: usize = 2;

/// Kind of a job, which determines how many run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Builds a computation graph.
    Graph,
    /// Anything else.
    Other,
}

/// Number of threads that read remote files. They mostly wait for the network.
const REMOTE_THREADS: usize = 16;

/// Limits concurrent jobs and holds the threads for remote files.
pub struct Jobs {
    permits: Arc<Semaphore>,
    graphs: Arc<Semaphore>,
    remote: Option<ThreadPool>,
}

/// Whether a job has been cancelled.
#[derive(Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Whether the job has been cancelled.
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl gguf_kit::Progress for CancelFlag {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        match self.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Cancels a job on drop. The request drops it when the client disconnects.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Jobs {
    /// Starts the threads for remote files if `remote`.
    pub fn new(remote: bool) -> Self {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(REMOTE_THREADS).build().ok();
        Self {
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            graphs: Arc::new(Semaphore::new(MAX_GRAPHS)),
            remote: remote.then(pool).flatten(),
        }
    }

    /// Waits for a permit and runs a job on a blocking thread. The job keeps its permit until it ends, also if its client
    /// has left.
    pub async fn run(
        &self,
        kind: JobKind,
        job: impl FnOnce(&CancelFlag) -> ApiResult + Send + 'static,
    ) -> ApiResult {
        let stopping = |_| ApiError::internal("the server is stopping");
        let graph = match kind {
            JobKind::Graph => Some(self.graphs.clone().acquire_owned().await.map_err(stopping)?),
            JobKind::Other => None,
        };
        let permit = self.permits.clone().acquire_owned().await.map_err(stopping)?;
        let cancel = CancelFlag::default();
        let _cancel_on_drop = CancelOnDrop(cancel.clone());
        let work = move || {
            let _permits = (graph, permit);
            // The client may have left while the job waited for a thread.
            match cancel.is_cancelled() {
                true => Err(ApiError::internal("the client has disconnected")),
                false => job(&cancel),
            }
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(ApiError::internal("the request failed unexpectedly")))
    }

    /// Computes on the threads for remote files or on the default thread pool.
    pub fn install<T: Send>(&self, remote: bool, compute: impl FnOnce() -> T + Send) -> T {
        match &self.remote {
            Some(pool) if remote => pool.install(compute),
            _ => compute(),
        }
    }
}
