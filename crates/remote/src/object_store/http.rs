//! HTTP transport for `object_store`: sends its requests through the agent of this crate, which
//! counts bytes and enforces timeouts, and avoids a second HTTP client with a second TLS library.

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

use crate::budget::ByteBudget;
use crate::client::{Client, CountedBody, fault};

/// Maximum length of a response body: a range or a page of a listing. A longer body is truncated.
const MAX_BODY: u64 = 16 << 20;

/// Connects `object_store` to the agent of this crate.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub client: Arc<Client>,
    /// Byte budget of all responses that are not file ranges.
    pub budget: Arc<ByteBudget>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        Ok(HttpClient::new(Service {
            client: Arc::clone(&self.client),
            budget: Arc::clone(&self.budget),
            allow_http: allow_http.is_some_and(|value| value == "true"),
        }))
    }
}

#[derive(Debug)]
struct Service {
    client: Arc<Client>,
    budget: Arc<ByteBudget>,
    allow_http: bool,
}

#[async_trait]
impl HttpService for Service {
    /// Blocks the thread, which is fine: each runtime has one thread and one future.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().scheme_str() == Some("http") && !self.allow_http && !loopback(&request) {
            let why = "an http:// endpoint is not encrypted: set AWS_ALLOW_HTTP, \
                       GOOGLE_ALLOW_HTTP or AZURE_ALLOW_HTTP to true to allow it";
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
            .timeout_recv_body(Some(self.client.body_timeout(MAX_BODY)))
            .build();
        let response = self.client.agent.run(request).map_err(http_error)?;
        let (parts, body) = response.into_parts();
        let reader = CountedBody::new(body, &self.client.transferred);
        let mut bytes = Vec::new();
        let taken = reader.take(MAX_BODY).read_to_end(&mut bytes);
        taken.map_err(|error| http_error(error.into()))?;
        // Anything but a file range is a page of a listing, or credentials.
        if !is_part {
            let spent = self.budget.spend(bytes.len() as u64);
            spent.map_err(|fault| HttpError::new(HttpErrorKind::Unknown, fault))?;
        }
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

fn http_error(error: ureq::Error) -> HttpError {
    let fault = fault(error);
    let kind =
        if fault.is_transient() { HttpErrorKind::Interrupted } else { HttpErrorKind::Unknown };
    HttpError::new(kind, fault)
}

/// Whether a request stays on the local machine.
fn loopback(request: &HttpRequest) -> bool {
    let url = Url::parse(&request.uri().to_string());
    url.is_ok_and(|url| match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    })
}
