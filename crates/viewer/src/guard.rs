//! Who may ask: only those who know the address, from pages that are ours.
//!
//! A page of somebody else in the same browser can send requests to this machine. It does not know the secret, its
//! requests carry its own origin, and a name of its that is made to lead here (rebinding) stands in `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

/// Headers of every answer: nothing but the files of the page may run, be shown or be asked for; nobody may show
/// the page in theirs, read it, or be told its address.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// What requests are held against.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The first part of every path.
    secret: String,
    address: SocketAddr,
}

impl Guard {
    /// A guard with a new secret.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(address: SocketAddr) -> std::io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|fault| std::io::Error::other(fault.to_string()))?;
        Ok(Self { secret: crate::answer::hex(&random), address })
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(match shown {
                SocketAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
                SocketAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            });
        }
        format!("http://{shown}/{}/", self.secret)
    }

    fn allows(&self, path: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        // All is looked at before anything is said.
        let given = path.strip_prefix('/').and_then(|path| path.split('/').next());
        let known = self.secret.as_bytes().ct_eq(given.unwrap_or_default().as_bytes());
        if !bool::from(known) {
            return Err(StatusCode::NOT_FOUND);
        }
        let host = only(headers, &HOST).ok_or(StatusCode::FORBIDDEN)?;
        let is_ours = host.is_some_and(|host| self.is_ours(host));
        let origin = only(headers, &ORIGIN).ok_or(StatusCode::FORBIDDEN)?;
        // The page is where it was asked for.
        let same = origin.is_none_or(|origin| origin.strip_prefix("http://") == host);
        if is_ours && same { Ok(()) } else { Err(StatusCode::FORBIDDEN) }
    }

    /// Whether a browser that was sent to this host asked for us: an address in numbers cannot be made to lead
    /// elsewhere, as a name can.
    fn is_ours(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_known = match name.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        is_known && port == self.address.port().to_string()
    }
}

/// The only header of this name: `None` if there are several, or it is no text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return None;
    }
    first.map(HeaderValue::to_str).transpose().ok()
}

/// Stands before everything.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match guard.allows(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(status) => status.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(guard: &Guard, path: &str, pairs: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers
                .append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        guard.allows(path, &headers).map_or_else(|status| status.as_u16(), |()| 200)
    }

    #[test]
    fn strangers_are_refused() {
        let guard = Guard::new(([127, 0, 0, 1], 4000).into()).unwrap();
        let path = format!("/{}/api/1/models", guard.secret);
        let host = ("host", "127.0.0.1:4000");
        assert_eq!(guard.secret.len(), 32);
        assert_eq!(allowed(&guard, &path, &[host]), 200);
        for secret in ["", "/", "/api/1/models", "/00000000000000000000000000000000/", &path[..20]]
        {
            assert_eq!(allowed(&guard, secret, &[host]), 404, "{secret}");
        }
        for good in ["localhost:4000", "LOCALHOST:4000", "127.0.0.2:4000", "[::1]:4000"] {
            assert_eq!(allowed(&guard, &path, &[("host", good)]), 200, "{good}");
        }
        for bad in [
            "example.org:4000",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1.example.org:4000",
            "192.168.1.2:4000",
            "localhost.:4000",
            "",
            "localhost:4000@x",
            "0.0.0.0:4000",
        ] {
            assert_eq!(allowed(&guard, &path, &[("host", bad)]), 403, "{bad}");
        }
        assert_eq!(allowed(&guard, &path, &[]), 403);
        assert_eq!(allowed(&guard, &path, &[host, host]), 403);
        assert_eq!(allowed(&guard, &path, &[host, ("origin", "http://127.0.0.1:4000")]), 200);
        for bad in [
            "null",
            "https://127.0.0.1:4000",
            "http://localhost:4000",
            "http://127.0.0.1",
            "http://evil",
        ] {
            assert_eq!(allowed(&guard, &path, &[host, ("origin", bad)]), 403, "{bad}");
        }
    }

    #[test]
    fn beyond_this_machine_numbers_are_fine_and_names_are_not() {
        let guard = Guard::new(([0, 0, 0, 0], 4000).into()).unwrap();
        let path = format!("/{}/", guard.secret);
        assert!(guard.url().starts_with("http://127.0.0.1:4000/"));
        assert_eq!(allowed(&guard, &path, &[("host", "192.168.1.2:4000")]), 200);
        assert_eq!(allowed(&guard, &path, &[("host", "machine.lan:4000")]), 403);
    }
}
