//! HTTP GET requests: redirects, credentials, timeouts, byte counting.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::error::{Error, Fault};
use crate::location::redact_url;
use crate::options::RemoteOptions;
use crate::redirect;
use crate::retry::retry_after;

/// Maximum number of redirects per request; browsers allow 20, a download needs one or two.
const MAX_REDIRECTS: u32 = 10;

/// Counter of network traffic.
#[derive(Clone, Debug, Default)]
pub struct Transferred(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    requests: AtomicU64,
    waiting: Mutex<Waiting>,
}

/// Requests that have no response yet.
#[derive(Debug, Default)]
struct Waiting {
    reads: u64,
    /// Time of the last byte, or of the first of these requests.
    since: Option<Instant>,
    fault: Option<FailedAttempt>,
}

/// A failed attempt of a request that is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Number of failures so far, from 1.
    pub failures: u32,
    /// Number of attempts before the request fails.
    pub attempts: u32,
    /// Reason of the last failure.
    pub reason: String,
}

impl Transferred {
    /// Number of body bytes received, without HTTP headers and TLS overhead.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Number of responses with a body, without redirects.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Time since the last byte, if a read is waiting for bytes.
    pub fn waiting(&self) -> Option<Duration> {
        let waiting = self.waiting_state();
        waiting.since.filter(|_| waiting.reads > 0).map(|since| since.elapsed())
    }

    /// The last failure of a read that is being retried.
    pub fn failed_attempt(&self) -> Option<FailedAttempt> {
        let waiting = self.waiting_state();
        waiting.fault.clone().filter(|_| waiting.reads > 0)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut waiting = self.waiting_state();
        waiting.since = Some(Instant::now());
        waiting.fault = None;
    }

    /// Counts a read as waiting until the returned value is dropped.
    pub(crate) fn begin_read(&self) -> WaitingRead {
        let mut waiting = self.waiting_state();
        if waiting.reads == 0 {
            waiting.since = Some(Instant::now());
            waiting.fault = None;
        }
        waiting.reads += 1;
        WaitingRead(self.clone())
    }

    /// Records a failed attempt of a read that is waiting.
    pub(crate) fn failed(&self, failures: u32, attempts: u32, fault: &Fault) {
        let reason = fault.to_string();
        self.waiting_state().fault = Some(FailedAttempt { failures, attempts, reason });
    }

    fn waiting_state(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read that is counted as waiting.
pub(crate) struct WaitingRead(Transferred);

impl Drop for WaitingRead {
    fn drop(&mut self) {
        self.0.waiting_state().reads -= 1;
    }
}

/// Final response of a request after redirects.
pub(crate) struct FinalResponse {
    pub response: Response<ureq::Body>,
    /// URL that sent the response.
    pub url: Url,
    /// Commit of the file, if a response of the hub stated it.
    pub commit: Option<String>,
    /// Digest of the file, if a response of the hub stated it.
    pub digest: Option<String>,
}

/// HTTP client.
#[derive(Debug)]
pub(crate) struct Client {
    pub agent: ureq::Agent,
    pub options: RemoteOptions,
    /// Base URL of the hub; its token is sent to no other host.
    pub endpoint: Url,
    pub transferred: Transferred,
}

impl Client {
    pub fn new(options: RemoteOptions) -> Result<Self, Error> {
        let invalid =
            |reason: String| Error::Location { word: options.hf_endpoint.clone(), reason };
        let endpoint = Url::parse(&options.hf_endpoint)
            .map_err(|error| invalid(format!("as HF_ENDPOINT: {error}")))?;
        if !["http", "https"].contains(&endpoint.scheme()) {
            return Err(invalid("HF_ENDPOINT must be an http:// or https:// URL".into()));
        }
        let tls = match &options.certificates {
            Some(path) => TlsConfig::builder().root_certs(roots(path)?).build(),
            None => TlsConfig::default(),
        };
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            // Statuses and redirects are handled here: some redirects may carry the token on, some
            // statuses are worth a retry.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_send_request(Some(options.read_timeout))
            .timeout_recv_response(Some(options.read_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .build()
            .into();
        Ok(Self { agent, options, endpoint, transferred: Transferred::default() })
    }

    /// Whether a URL is on the hub and may receive its token.
    pub fn at_endpoint(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }

    /// Returns the read timeout for a body with `bytes` requested bytes.
    pub fn body_timeout(&self, bytes: u64) -> Duration {
        self.options.read_timeout + Duration::from_secs(bytes / self.options.min_throughput.max(1))
    }

    /// Sends a GET request, follows redirects, and returns the first other response. Statuses other
    /// than 2xx and 416 are errors.
    pub fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        bytes: u64,
    ) -> Result<FinalResponse, Fault> {
        let mut url = url.clone();
        let (mut commit, mut digest) = (None, None);
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(url.as_str());
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            if let Some(token) = &self.options.hf_token
                && self.at_endpoint(&url)
            {
                request = request.header("Authorization", format!("Bearer {}", token.0));
            }
            let request =
                request.config().timeout_recv_body(Some(self.body_timeout(bytes))).build();
            let response = request.call().map_err(fault)?;
            let header = |name| text(response.headers(), name).map(str::to_owned);
            if self.at_endpoint(&url) {
                commit = header("X-Repo-Commit").or(commit);
                digest = header("X-Linked-ETag").or(digest);
            }
            match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => {
                    let target = header("Location").ok_or(Fault::Redirect("without a target"))?;
                    url = redirect::resolve(&url, &target)?;
                }
                200..=299 | 416 => return Ok(FinalResponse { response, url, commit, digest }),
                status => return Err(self.refusal(status, response.headers(), &url)),
            }
        }
        Err(Fault::Redirect("too often"))
    }

    fn refusal(&self, status: u16, headers: &HeaderMap, url: &Url) -> Fault {
        if let Some(busy) = busy(status, headers) {
            return busy;
        }
        let advice = match status {
            401 | 403 if self.at_endpoint(url) && self.options.hf_token.is_none() => {
                "set HF_TOKEN to a token with access to the repository, and check its name"
            }
            401 | 403 if self.at_endpoint(url) => {
                "the token in HF_TOKEN has no access to the repository; accept the model's terms on \
                                 its page, or use another token"
            }
            401 | 403 => "the server requires credentials; a signed URL may have expired",
            404 | 410 => "the file does not exist; check the name",
            _ => "the server refuses the request",
        };
        // The hub explains the reason in a header.
        let hint = match text(headers, "X-Error-Message") {
            Some(message) => format!("{message:.200}; {advice}"),
            None => advice.into(),
        };
        Fault::Status { status, hint }
    }

    /// Builds an error about a URL.
    pub fn error(&self, url: &Url, fault: Fault) -> Error {
        Error::Remote { place: redact_url(url), fault }
    }
}

/// Returns the fault of a server that cannot respond now.
pub(crate) fn busy(status: u16, headers: &HeaderMap) -> Option<Fault> {
    let is_busy = matches!(status, 408 | 429 | 500 | 502 | 503 | 504);
    let wait = text(headers, "Retry-After").and_then(retry_after);
    is_busy.then_some(Fault::Busy { status, wait })
}

/// Reads the certificates of a PEM file.
fn roots(path: &Path) -> Result<RootCerts, Error> {
    let fail = |error| gguf::Error::environment("read the certificates in", path, error);
    let pem = std::fs::read(path).map_err(fail)?;
    let items: Result<Vec<_>, _> = parse_pem(&pem).collect();
    let items = items.map_err(|error| fail(std::io::Error::other(error)))?;
    let certificates = items.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    Ok(RootCerts::Specific(Arc::new(certificates.collect())))
}

/// Returns a header value if it is printable ASCII, which is safe to print to a terminal.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Classifies a failed request.
pub(crate) fn fault(error: ureq::Error) -> Fault {
    use ureq::Error as E;
    let message = described(&error);
    match error {
        E::Io(error) if is_lookup(&error) => Fault::Unreachable(message),
        E::HostNotFound
        | E::BadUri(_)
        | E::Http(_)
        | E::InvalidProxyUrl
        | E::Tls(_)
        | E::Rustls(_) => Fault::Unreachable(message),
        // A rejected certificate is reported as invalid data.
        E::Io(error) if error.kind() == ErrorKind::InvalidData => Fault::Unreachable(message),
        _ => Fault::Connection(message),
    }
}

/// Returns why a request failed, without words of the libraries below, and what to do.
fn described(error: &ureq::Error) -> String {
    use ureq::Error as E;
    match error {
        E::HostNotFound => NO_HOST.to_owned(),
        E::Io(error) if is_lookup(error) => NO_HOST.to_owned(),
        E::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "the server refuses the connection".to_owned(),
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof => "the server broke the connection; try again".to_owned(),
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                "the server does not answer; try again".to_owned()
            }
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                "the network is not reachable: check the connection".to_owned()
            }
            _ => error.to_string(),
        },
        E::Timeout(_) => "the server does not answer; try again".to_owned(),
        E::ConnectionFailed => "no connection to the server: check the network".to_owned(),
        error => error.to_string(),
    }
}

const NO_HOST: &str =
    "the name of the server is not known: check the network connection and the name";

/// Whether the name of the host could not be resolved: a code of Windows Sockets (`WSAHOST_NOT_FOUND` to `WSANO_DATA`);
/// elsewhere only the text of the error says it.
fn is_lookup(error: &std::io::Error) -> bool {
    match error.raw_os_error() {
        Some(code) if cfg!(windows) => (11_001..=11_004).contains(&code),
        _ => error.to_string().contains("failed to lookup address"),
    }
}

/// A response body that counts its bytes.
pub(crate) struct CountedBody<'c> {
    body: ureq::BodyReader<'static>,
    transferred: &'c Transferred,
}

impl<'c> CountedBody<'c> {
    /// Wraps the body and counts the response.
    pub fn new(body: ureq::Body, transferred: &'c Transferred) -> Self {
        transferred.0.requests.fetch_add(1, Ordering::Relaxed);
        Self { body: body.into_reader(), transferred }
    }
}

impl Read for CountedBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.body.read(buffer)?;
        self.transferred.add(read);
        Ok(read)
    }
}
