//! `gguf view`: a local web server with a page that inspects models.
//!
//! [`Server::bind`] opens the models and the port; [`Server::run`] serves until it is stopped. `docs/viewer-api.md`
//! documents the requests; [`gguf_kit`] computes the responses. Files are read by position and never mapped, so a file
//! that changes or shrinks while it is open causes an error response and not a crash. Memory is bounded by the headers
//! and the limits of connections and concurrent requests.

mod api;
mod assets;
mod connections;
mod guard;
mod jobs;
mod models;
mod query;
mod response;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use gguf_kit::Error;
use gguf_remote::Cache;
use gguf_tokenizer::template::Renderer;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::connections::ConnectionLimits;
use crate::guard::Guard;
use crate::jobs::Jobs;
use crate::models::Models;

/// Options of [`Server::bind`].
pub struct ServerOptions {
    /// Paths or URLs of the models.
    pub models: Vec<String>,
    /// The unquantized model that the first model is compared with.
    pub original: Option<String>,
    /// The address to listen at; the loopback address by default.
    pub listen: IpAddr,
    /// The port; 0 chooses a free one.
    pub port: u16,
    /// Renders chat templates.
    pub renderer: Renderer,
    /// Cache of remote files.
    pub cache: Option<Arc<Cache>>,
    /// Version of the program.
    pub version: &'static str,
}

impl ServerOptions {
    /// Returns the options for serving models on the loopback address.
    pub fn new(models: Vec<String>, renderer: Renderer) -> Self {
        Self {
            models,
            original: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            renderer,
            cache: None,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// A server that is bound to its address and not yet running.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    guard: Guard,
    session: Arc<Session>,
}

/// Stops a server on drop.
pub struct StopHandle(
    #[allow(dead_code, reason = "dropping it stops the server")] oneshot::Sender<()>,
);

/// State shared by all requests.
pub(crate) struct Session {
    pub models: Models,
    /// Index of the original of the first model.
    pub original: Option<usize>,
    pub renderer: Renderer,
    pub version: &'static str,
    pub cache: Option<Arc<Cache>>,
    pub jobs: Jobs,
}

impl Server {
    /// Opens the models and binds the address. Models with invalid headers are opened too.
    ///
    /// # Errors
    /// If a model cannot be read or the address cannot be bound.
    pub fn bind(options: ServerOptions) -> Result<Self, Error> {
        let address = SocketAddr::new(options.listen, options.port);
        let failed = |source| Error::environment("listen at", address.to_string().as_ref(), source);
        let sources = options.models.iter().chain(&options.original);
        let models = Models::open(sources, options.cache.clone())?;
        let original = options.original.as_ref().map(|_| models.len() - 1);
        let is_remote = |index| models.model(index).is_ok_and(|model| model.files.is_remote());
        let jobs = Jobs::new((0..models.len()).any(is_remote));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(jobs::MAX_CONCURRENT)
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let guard = listener.local_addr().and_then(Guard::new).map_err(failed)?;
        let session = Session {
            models,
            original,
            renderer: options.renderer,
            version: options.version,
            cache: options.cache,
            jobs,
        };
        Ok(Self { runtime, listener, guard, session: Arc::new(session) })
    }

    /// Returns the URL of the page, including the secret.
    pub fn url(&self) -> String {
        self.guard.url()
    }

    /// Returns a handle that stops a server, and the future to pass to [`Server::run`].
    pub fn stop_handle() -> (StopHandle, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = oneshot::channel();
        (StopHandle(sender), async { drop(receiver.await) })
    }

    /// Serves until `stop` completes. Requests in progress may then finish for two seconds; computations that take
    /// longer are abandoned.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) {
        let router = api::router(self.session, self.guard);
        self.runtime.block_on(connections::serve(
            self.listener,
            router,
            ConnectionLimits::default(),
            stop,
        ));
        self.runtime.shutdown_background();
    }
}
