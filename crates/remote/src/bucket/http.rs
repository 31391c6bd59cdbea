//! The requests of `object_store`, sent through the agent that sends all others: it counts bytes, keeps
//! the time limits, and spares the program a second HTTP client with a second encryption library.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use url::{Host, Url};

use crate::allowance::Allowance;
use crate::client::{Client, Counted, fault};

/// The longest body that is taken: a piece, or a listing. A store that sends more than it was
/// asked for is cut off here.
const LONGEST_BODY: u64 = 16 << 20;

/// Lets `object_store` send its requests through our agent.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub client: Arc<Client>,
    /// Bytes of all answers that are no part of a file.
    pub allowance: Arc<Allowance>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(Service {
            client: Arc::clone(&self.client),
            allowance: Arc::clone(&self.allowance),
            allow_http: allow_http.is_some_and(|value| value == "true"),
        }))
    }
}

#[derive(Debug)]
struct Service {
    client: Arc<Client>,
    allowance: Arc<Allowance>,
    allow_http: bool,
}

#[async_trait]
impl HttpService for Service {
    /// Blocks, which harms nobody: each runtime has one thread and one future.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().scheme_str() == Some("http") && !self.allow_http && !loopback(&request) {
            let why = "an http:// endpoint is open to everybody on the way: set AWS_ALLOW_HTTP, \
                       GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP to true if that is fine";
            return Err(HttpError::new_boxed(HttpErrorKind::Unknown, why.into()));
        }
        let is_part = request.headers().contains_key("Range");
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let sent = self.client.body_timeout(body.len() as u64);
        let request = ureq::http::Request::from_parts(parts, &*body);
        let request = self
            .client
            .agent
            .configure_request(request)
            .timeout_send_body(Some(sent))
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
            let spent = self.allowance.spend(bytes.len() as u64);
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
