//! GET requests: redirects, secrets, time limits, and the count of bytes.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::error::{Error, Fault};
use crate::location::shown;
use crate::options::Options;
use crate::redirect;
use crate::retry::retry_after;

/// Redirects followed for one request; browsers allow 20, a download needs one or two.
const MAX_REDIRECTS: u32 = 10;

/// What has come over the network so far.
#[derive(Clone, Debug, Default)]
pub struct Transferred(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Transferred {
    /// Bytes of bodies; headers of HTTP and encryption are not among them.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Requests that were answered with a body; those that were sent on are not among them.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What a server has answered in the end.
pub(crate) struct Answer {
    pub response: Response<ureq::Body>,
    /// The address that gave it.
    pub url: Url,
    /// The commit that the hub took the file from, if it was asked on the way.
    pub commit: Option<String>,
    /// The digest of the file, as the hub knows it.
    pub digest: Option<String>,
}

/// What sends requests.
#[derive(Debug)]
pub(crate) struct Client {
    pub agent: ureq::Agent,
    pub options: Options,
    /// The hub's base address; its token goes nowhere else.
    pub endpoint: Url,
    pub transferred: Transferred,
}

impl Client {
    pub fn new(options: Options) -> Result<Self, Error> {
        let wrong = |why: String| Error::Location { word: options.hf_endpoint.clone(), why };
        let endpoint = Url::parse(&options.hf_endpoint)
            .map_err(|error| wrong(format!("as HF_ENDPOINT: {error}")))?;
        if !["http", "https"].contains(&endpoint.scheme()) {
            return Err(wrong("HF_ENDPOINT must be an http:// or https:// URL".into()));
        }
        let tls = match &options.certificates {
            Some(path) => TlsConfig::builder().root_certs(roots(path)?).build(),
            None => TlsConfig::default(),
        };
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            // Statuses and redirects are judged here: which of them carry the token on, which
            // are worth another try.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_send_request(Some(options.stall_timeout))
            .timeout_recv_response(Some(options.stall_timeout))
            .timeout_per_read(Some(options.stall_timeout))
            .build()
            .into();
        Ok(Self { agent, options, endpoint, transferred: Transferred::default() })
    }

    /// True for addresses of the hub, which may see its token.
    pub fn at_endpoint(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }

    /// Longest time for a body of which `bytes` are wanted.
    pub fn body_timeout(&self, bytes: u64) -> Duration {
        self.options.stall_timeout + Duration::from_secs(bytes / self.options.slowest.max(1))
    }

    /// Sends one GET, follows redirects, and returns the first other answer. Answers that are
    /// neither 2xx nor 416 are faults.
    pub fn get(&self, url: &Url, headers: &[(&str, &str)], bytes: u64) -> Result<Answer, Fault> {
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
            let said = |name| text(response.headers(), name).map(str::to_owned);
            if self.at_endpoint(&url) {
                commit = said("X-Repo-Commit").or(commit);
                digest = said("X-Linked-ETag").or(digest);
            }
            match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => {
                    let target = said("Location").ok_or(Fault::Redirect("to nowhere"))?;
                    url = redirect::allowed(&url, &target)?;
                }
                200..=299 | 416 => return Ok(Answer { response, url, commit, digest }),
                status => return Err(self.refusal(status, response.headers(), &url)),
            }
        }
        Err(Fault::Redirect("without end"))
    }

    fn refusal(&self, status: u16, headers: &HeaderMap, url: &Url) -> Fault {
        if matches!(status, 408 | 429 | 500 | 502 | 503 | 504) {
            let wait = text(headers, "Retry-After").and_then(retry_after);
            return Fault::Busy { status, wait };
        }
        let advice = match status {
            401 | 403 if self.at_endpoint(url) && self.options.hf_token.is_none() => {
                "set HF_TOKEN to a token that may read the repository, and check its name"
            }
            401 | 403 if self.at_endpoint(url) => {
                "the token in HF_TOKEN may not read the repository; accept the model's terms on \
                 its page, or use another token"
            }
            401 | 403 => "the server wants permission; a signed URL may have expired",
            404 | 410 => "there is no such file; check the name",
            _ => "the server refuses",
        };
        // The hub says in a header which of several reasons it was.
        let hint = match text(headers, "X-Error-Message") {
            Some(said) => format!("{said:.200}; {advice}"),
            None => advice.into(),
        };
        Fault::Status { status, hint }
    }

    /// An error about a URL.
    pub fn error(&self, url: &Url, fault: Fault) -> Error {
        Error::Remote { place: shown(url), fault }
    }
}

/// The certificates in a PEM file.
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

/// A header, if it is there and printable ASCII: harmless for a terminal too.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// What a failed request means.
pub(crate) fn fault(error: ureq::Error) -> Fault {
    use ureq::Error as E;
    let message = error.to_string();
    match error {
        E::HostNotFound
        | E::BadUri(_)
        | E::Http(_)
        | E::InvalidProxyUrl
        | E::Tls(_)
        | E::Rustls(_) => Fault::Unreachable(message),
        // A certificate that is refused arrives like this.
        E::Io(error) if error.kind() == ErrorKind::InvalidData => Fault::Unreachable(message),
        _ => Fault::Connection(message),
    }
}

/// A body whose bytes are counted.
pub(crate) struct Counted<'c> {
    body: ureq::BodyReader<'static>,
    transferred: &'c Transferred,
}

impl<'c> Counted<'c> {
    /// The body of one more answer.
    pub fn new(body: ureq::Body, transferred: &'c Transferred) -> Self {
        transferred.0.requests.fetch_add(1, Ordering::Relaxed);
        Self { body: body.into_reader(), transferred }
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.body.read(buffer)?;
        self.transferred.add(read);
        Ok(read)
    }
}
