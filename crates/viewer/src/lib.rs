//! A local web page that shows what is in models, and the server behind it.
//!
//! [`Server::bind`] opens models and an address on this machine; [`Server::run`] answers until it is told to stop.
//! What requests look like stands in `docs/viewer-api.md`; what they ask for is computed by [`gguf_kit`]. Files are
//! read by position and never mapped: one that is changed or shortened while it is shown gives an error.
//! Memory is that of the headers, and of what a bounded number of requests computes at a time.

mod answer;
mod api;
mod ask;
mod guard;
mod page;
mod shown;
mod work;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use gguf_kit::Error;
use gguf_remote::Cache;
use gguf_tokenizer::template::Renderer;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::guard::Guard;
use crate::shown::Shelf;
use crate::work::Work;

/// What is shown, and where.
pub struct Options {
    /// Models, as a user names them.
    pub models: Vec<String>,
    /// What the first of them was made from, to be compared with.
    pub original: Option<String>,
    /// The address to listen at; that of this machine to itself by default.
    pub listen: IpAddr,
    /// The port; 0 for a free one.
    pub port: u16,
    /// Whoever renders chat templates.
    pub renderer: Renderer,
    /// Where parts of far files are kept; `None` to fetch them each time.
    pub cache: Option<Arc<Cache>>,
    /// What the program says of its version.
    pub version: &'static str,
}

impl Options {
    /// Models on an address that only this machine can reach.
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

/// A server that has its address, and answers once it runs.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    guard: Guard,
    session: Arc<Session>,
}

/// Tells a server to stop; so does dropping it.
pub struct Stop(#[allow(dead_code, reason = "it is dropped")] oneshot::Sender<()>);

/// What requests work with.
pub(crate) struct Session {
    pub models: Shelf,
    /// The number of what the first model was made from.
    pub original: Option<usize>,
    pub renderer: Renderer,
    pub version: &'static str,
    pub cache: Option<Arc<Cache>>,
    pub work: Work,
}

impl Server {
    /// Opens the models and the address.
    ///
    /// # Errors
    /// If a model cannot be had, or the address. A model that breaks the format can be shown.
    pub fn bind(options: Options) -> Result<Self, Error> {
        let address = SocketAddr::new(options.listen, options.port);
        let failed = |source| Error::environment("listen at", address.to_string().as_ref(), source);
        let sources = options.models.iter().chain(&options.original);
        let models = Shelf::open(sources, options.cache.clone())?;
        let original = options.original.as_ref().map(|_| models.len() - 1);
        let is_far = |id| models.model(id).is_ok_and(|model| model.files.is_far());
        let work = Work::new((0..models.len()).any(is_far));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(work::AT_ONCE)
            .enable_io()
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
            work,
        };
        Ok(Self { runtime, listener, guard, session: Arc::new(session) })
    }

    /// The address of the page, secret included.
    pub fn url(&self) -> String {
        self.guard.url()
    }

    /// What stops it.
    pub fn stop() -> (Stop, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = oneshot::channel();
        (Stop(sender), async { drop(receiver.await) })
    }

    /// Answers until `stop` is there; work that was begun is ended.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let url = self.url();
        let router = api::router(self.session, self.guard);
        let served =
            async { axum::serve(self.listener, router).with_graceful_shutdown(stop).await };
        let served = self.runtime.block_on(served);
        served.map_err(|source| Error::environment("serve", url.as_ref(), source))
    }
}
