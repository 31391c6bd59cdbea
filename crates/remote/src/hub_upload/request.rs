//! Requests that send data: JSON to the hub, bytes to its storage.

use std::io::Read;
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::http::{HeaderMap, Request, Response};
use ureq::{AsSendBody, SendBody};
use url::Url;

use crate::client::{Client, CountedBody, busy, fault, text};
use crate::error::Fault;
use crate::redirect;
use crate::retry::retry;

/// Maximum length of a response: the addresses of ten thousand parts take a tenth of it.
const MAX_RESPONSE: u64 = 64 << 20;

/// Time for the hub to process a request, such as a commit or the end of an upload.
const PROCESSING_TIME: Duration = Duration::from_secs(600);

/// Maximum number of redirects of a repository that was renamed.
const MAX_REDIRECTS: u32 = 3;

/// A body that can be read again for a retry.
pub(crate) struct Body<'b> {
    pub len: u64,
    /// Returns a reader from the first byte on.
    pub open: &'b dyn Fn() -> Box<dyn Read + 'b>,
}

impl Client {
    /// Posts a text to the hub and parses its JSON response. The token is sent to the hub only.
    ///
    /// # Errors
    /// [`Fault::Status`] with advice, if the hub refuses.
    pub fn post<T: DeserializeOwned>(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        text: &[u8],
        with_token: bool,
    ) -> Result<T, Fault> {
        retry(&self.options, || self.post_once(url, headers, text, with_token))
    }

    /// As [`Client::post`], without retries: for requests that must not be repeated blindly.
    pub fn post_once<T: DeserializeOwned>(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        text: &[u8],
        with_token: bool,
    ) -> Result<T, Fault> {
        let open = || Box::new(text) as Box<dyn Read>;
        let body = Body { len: text.len() as u64, open: &open };
        parse(&self.send("POST", url, headers, Some(&body), with_token)?.1)
    }

    /// Gets a JSON document of the hub.
    pub fn get_json<T: DeserializeOwned>(&self, url: &Url) -> Result<T, Fault> {
        retry(&self.options, || parse(&self.send("GET", url, &[], None, true)?.1))
    }

    /// Puts bytes to the storage of the hub, without the token and without retries; returns the headers of the response.
    pub fn put_once(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        body: &Body<'_>,
    ) -> Result<HeaderMap, Fault> {
        Ok(self.send("PUT", url, headers, Some(body), false)?.0)
    }

    /// Sends one request, and again to the target of a redirect.
    fn send(
        &self,
        method: &str,
        url: &Url,
        headers: &[(&str, &str)],
        body: Option<&Body<'_>>,
        with_token: bool,
    ) -> Result<(HeaderMap, Vec<u8>), Fault> {
        let len = body.map_or(0, |body| body.len);
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::builder().method(method).uri(url.as_str());
            if body.is_some() {
                request = request.header("Content-Length", len);
            }
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            if let Some(token) = &self.options.hf_token
                && with_token
                && self.at_endpoint(&url)
            {
                request = request.header("Authorization", format!("Bearer {}", token.0));
            }
            let unusable = |_| Fault::Response("it names headers that cannot be sent".into());
            let response = match body.map(|body| (body.open)()) {
                Some(mut reader) => {
                    let body = SendBody::from_reader(&mut reader);
                    self.run(request.body(body).map_err(unusable)?, len)
                }
                None => self.run(request.body(()).map_err(unusable)?, len),
            };
            let response = response.map_err(fault)?;
            let (parts, response) = response.into_parts();
            let mut bytes = Vec::new();
            CountedBody::new(response, &self.transferred)
                .take(MAX_RESPONSE + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| Fault::Connection(error.to_string()))?;
            if bytes.len() as u64 > MAX_RESPONSE {
                return Err(Fault::Response("it is too long".into()));
            }
            let status = parts.status.as_u16();
            match status {
                200..=299 => return Ok((parts.headers, bytes)),
                301 | 302 | 307 | 308 if body.is_none() || status >= 307 => {
                    let target = text(&parts.headers, "Location");
                    let target = target.ok_or(Fault::Redirect("without a target"))?;
                    url = redirect::resolve(&url, target)?;
                }
                _ => return Err(self.refused(status, &parts.headers, &bytes, &url)),
            }
        }
        Err(Fault::Redirect("too often"))
    }

    /// Runs a request with `len` bytes.
    fn run(
        &self,
        request: Request<impl AsSendBody>,
        len: u64,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let request = self
            .agent
            .configure_request(request)
            .timeout_send_body(Some(self.body_timeout(len)))
            .timeout_recv_response(Some(self.options.read_timeout.max(PROCESSING_TIME)))
            .timeout_recv_body(Some(self.body_timeout(MAX_RESPONSE)))
            .build();
        self.agent.run(request)
    }

    fn refused(&self, status: u16, headers: &HeaderMap, body: &[u8], url: &Url) -> Fault {
        if let Some(busy) = busy(status, headers) {
            return busy;
        }
        let advice = match status {
            _ if !self.at_endpoint(url) => "the storage of the hub refuses the bytes; upload again",
            401 if self.options.hf_token.is_none() => NO_TOKEN,
            401 => {
                "the token is unknown or expired; make another one at \
                    https://huggingface.co/settings/tokens"
            }
            403 => {
                "the token may not write to this repository; use one with the permission to write"
            }
            404 => {
                "the repository or branch does not exist, or the token may not see it; check its name; \
                    `gguf upload --create` creates it"
            }
            409 | 412 => "the repository has changed meanwhile; try again",
            413 => "the files are too large for one commit; upload fewer at once",
            _ => "the hub refuses the request",
        };
        // The hub explains the reason in a header or in JSON.
        let said = || {
            Some(
                serde_json::from_slice::<serde_json::Value>(body).ok()?["error"]
                    .as_str()?
                    .to_owned(),
            )
        };
        let said = text(headers, "X-Error-Message").map(str::to_owned).or_else(said);
        let said = said.map(|said| said.escape_debug().to_string());
        let hint = match said {
            Some(said) => format!("{said:.200}; {advice}"),
            None => advice.into(),
        };
        Fault::Status { status, hint }
    }
}

/// Parses a response; an empty one is `null`.
fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    let json = if json.is_empty() { b"null" } else { json };
    serde_json::from_slice(json)
        .map_err(|error| Fault::Response(format!("the hub answers in an unknown form ({error})")))
}

/// Advice for uploads without a token.
pub(super) const NO_TOKEN: &str = "set HF_TOKEN to a token that may write to the repository \
                                   (https://huggingface.co/settings/tokens), or log in with `hf auth login`";
