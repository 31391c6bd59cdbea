//! Objects in S3, Google Cloud Storage and Azure Blob Storage.
//!
//! `object_store` knows how each of them signs requests; the requests themselves go through the
//! same agent as all others, which counts bytes, keeps the time limits, and spares the program a
//! second HTTP client with a second encryption library.

use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig,
};
use tokio::runtime::Runtime;
use url::{Host, Url};

use crate::allowance::Allowance;
use crate::client::{Client, Counted, fault};
use crate::credentials;
use crate::error::{Error, Fault};
use crate::location::shown;
use crate::pick::pick;
use crate::version::strong;

/// The most that one request asks for.
const PIECE: usize = 8 << 20;

/// The longest body that is taken: a piece, or a listing. A store that sends more than it was
/// asked for is cut off here.
const LONGEST_BODY: u64 = 16 << 20;

/// Bytes of all pages of a listing.
const LONGEST_LISTING: u64 = 64 << 20;

/// An object in a bucket.
pub(crate) struct BucketFile {
    store: Box<dyn ObjectStore>,
    runtime: Runtime,
    path: Path,
    url: Url,
    len: u64,
    etag: Option<String>,
    /// Its URL, as messages have it.
    name: PathBuf,
}

impl BucketFile {
    /// Asks for the length of the object at `url`, or of the only model below it if it ends
    /// with `/`.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let fail = |fault| client.error(&url, fault);
        let failed = |error: object_store::Error| fail(Fault::Store(explain(&error, &url)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| fail(Fault::Store(error.to_string())))?;
        let listing = Arc::new(Allowance::new(LONGEST_LISTING, "the listing has no end"));
        let store = store(&client, &url, &listing)?;
        let wrong = |error: object_store::path::Error| fail(Fault::Store(error.to_string()));
        let mut path = Path::from_url_path(url.path()).map_err(wrong)?;
        if matches!(url.path(), "" | "/") || url.path().ends_with('/') {
            let listing = wait(&runtime, store.list_with_delimiter(Some(&path)));
            let objects = listing.map_err(failed)?.objects.into_iter();
            let names = objects.map(|object| object.location.into()).collect();
            path = Path::parse(pick(shown(&url), names, "")?).map_err(wrong)?;
        }
        let meta = wait(&runtime, store.head(&path)).map_err(failed)?;
        let url = of_key(url, path.as_ref());
        let name = shown(&url).into();
        Ok(Self { store, runtime, path, url, len: meta.size, etag: meta.e_tag, name })
    }

    /// The key of the object.
    pub fn key(&self) -> &str {
        self.path.as_ref()
    }

    /// Its URL, also if that of a folder was asked for.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn piece(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(offset..offset + buffer.len() as u64)),
            if_match: strong(self.etag.as_deref()),
            ..GetOptions::default()
        };
        let fetch = async {
            let result = self.store.get_opts(&self.path, options).await?;
            let (len, etag) = (result.meta.size, result.meta.e_tag.clone());
            Ok((len, etag, result.bytes().await?))
        };
        let (len, etag, bytes) = wait(&self.runtime, fetch).map_err(|error| match error {
            object_store::Error::Precondition { .. } => Fault::Changed,
            error => Fault::Store(error.to_string()),
        })?;
        // Not every store knows conditions.
        if len != self.len || etag != self.etag {
            return Err(Fault::Changed);
        }
        if bytes.len() != buffer.len() {
            return Err(Fault::Answer("its length is not that of the range".into()));
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

/// The URL of an object in the bucket of another.
fn of_key(mut url: Url, key: &str) -> Url {
    // Fails for URLs that cannot have a path; those of buckets can.
    if let Ok(mut path) = url.path_segments_mut() {
        path.clear().extend(key.split('/'));
    }
    url
}

impl gguf_store::Source for BucketFile {
    /// `None` if the store gives no ETag that stands for bytes.
    fn identity(&self) -> Option<String> {
        let etag = strong(self.etag.as_deref())?;
        Some(format!("{} {} {etag}", shown(&self.url), self.len))
    }

    fn file(&self) -> Option<&std::path::Path> {
        Some(&self.name)
    }

    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], mut offset: u64) -> Result<(), gguf::Error> {
        let fail = |source| gguf::Error::read(&self.name, source);
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        for piece in buffer.chunks_mut(PIECE) {
            self.piece(piece, offset).map_err(|fault| fail(std::io::Error::other(fault)))?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

/// The store of a URL, with keys, region and endpoint from the environment.
///
/// # Errors
/// If the environment has no keys, and does not say where else they are.
fn store(
    client: &Arc<Client>,
    url: &Url,
    listing: &Arc<Allowance>,
) -> Result<Box<dyn ObjectStore>, Error> {
    let fail = |why| client.error(url, Fault::Store(why));
    let connector = Connector { client: Arc::clone(client), listing: Arc::clone(listing) };
    let options = &client.options;
    let retry = RetryConfig {
        max_retries: options.attempts.saturating_sub(1) as usize,
        backoff: BackoffConfig {
            init_backoff: options.backoff,
            max_backoff: options.longest_wait,
            base: 2.0,
        },
        ..RetryConfig::default()
    };
    macro_rules! build {
        ($builder:ty, $missing:path) => {{
            let builder = <$builder>::from_env();
            if let Some(what) = $missing(&builder) {
                return Err(fail(what.into()));
            }
            builder
                .with_url(url.as_str())
                .with_http_connector(connector)
                .with_retry(retry)
                .build()
                .map(|store| Box::new(store) as Box<dyn ObjectStore>)
        }};
    }
    let store = match url.scheme() {
        #[cfg(feature = "aws")]
        "s3" => build!(object_store::aws::AmazonS3Builder, credentials::missing_for_s3),
        #[cfg(feature = "gcp")]
        "gs" => build!(object_store::gcp::GoogleCloudStorageBuilder, credentials::missing_for_gs),
        #[cfg(feature = "azure")]
        "az" => build!(object_store::azure::MicrosoftAzureBuilder, credentials::missing_for_az),
        other => return Err(fail(format!("this program was built without {other}://"))),
    };
    store.map_err(|error| fail(explain(&error, url)))
}

/// What a store's client says, and what the environment should hold if that may be the reason.
fn explain(error: &object_store::Error, url: &Url) -> String {
    use object_store::Error as E;
    let advice = match url.scheme() {
        "s3" => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for other stores than \
             Amazon's, AWS_ENDPOINT_URL; or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        "gs" => "set GOOGLE_SERVICE_ACCOUNT, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
        _ => {
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or \
             AZURE_SKIP_SIGNATURE=true for a public container"
        }
    };
    match error {
        E::NotFound { .. } => "there is no such object".into(),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } | E::Generic { .. } => {
            format!("{error}; {advice}")
        }
        error => error.to_string(),
    }
}

/// Runs a future to its end on a thread of its own: the caller may be within another runtime,
/// which forbids waiting.
fn wait<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| runtime.block_on(future));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Lets `object_store` send its requests through our agent.
#[derive(Clone, Debug)]
struct Connector {
    client: Arc<Client>,
    listing: Arc<Allowance>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(Service {
            client: Arc::clone(&self.client),
            listing: Arc::clone(&self.listing),
            allow_http: allow_http.is_some_and(|value| value == "true"),
        }))
    }
}

#[derive(Debug)]
struct Service {
    client: Arc<Client>,
    listing: Arc<Allowance>,
    allow_http: bool,
}

#[async_trait]
impl HttpService for Service {
    /// Blocks, which harms nobody: the runtime has one thread and one future.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().scheme_str() == Some("http") && !self.allow_http && !loopback(&request) {
            let why = "an http:// endpoint is open to everybody on the way: set AWS_ALLOW_HTTP, \
                       GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP to true if that is fine";
            return Err(HttpError::new_boxed(HttpErrorKind::Unknown, why.into()));
        }
        let is_part = request.headers().contains_key("Range");
        let (parts, body) = request.into_parts();
        let body = body.as_bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
        let request = ureq::http::Request::from_parts(parts, body);
        let request = self
            .client
            .agent
            .configure_request(request)
            .timeout_recv_body(Some(self.client.body_timeout(LONGEST_BODY)))
            .build();
        let response = self.client.agent.run(request).map_err(http_error)?;
        let (parts, body) = response.into_parts();
        let reader = Counted::new(body, &self.client.transferred);
        let mut bytes = Vec::new();
        let taken = reader.take(LONGEST_BODY).read_to_end(&mut bytes);
        taken.map_err(|error| http_error(error.into()))?;
        // What is no part of a file is a page of a listing, or a key.
        if !is_part {
            let spent = self.listing.spend(bytes.len() as u64);
            spent.map_err(|fault| HttpError::new(HttpErrorKind::Unknown, fault))?;
        }
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

fn http_error(error: ureq::Error) -> HttpError {
    let fault = fault(error);
    let kind = if fault.is_passing() { HttpErrorKind::Interrupted } else { HttpErrorKind::Unknown };
    HttpError::new(kind, fault)
}

/// True if a request does not leave this machine.
fn loopback(request: &HttpRequest) -> bool {
    let url = Url::parse(&request.uri().to_string());
    url.is_ok_and(|url| match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    })
}
