//! Request authorization: a secret in the path, and checks of `Host` and `Origin`.
//!
//! Any website in the same browser can send requests to this machine (CSRF). It does not know the secret, its requests
//! carry a foreign `Origin`, and after DNS rebinding they carry a foreign `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

/// Security headers of every response: the page loads its own files only; other sites cannot frame it, read it, or
/// receive its address as the referrer.
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

/// Authorizes requests.
#[derive(Clone, Debug)]
pub struct Guard {
    /// First segment of every path.
    secret: String,
    address: SocketAddr,
}

impl Guard {
    /// Generates a new secret.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub fn new(address: SocketAddr) -> std::io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|fault| std::io::Error::other(fault.to_string()))?;
        Ok(Self { secret: crate::response::hex(&random), address })
    }

    /// Returns the URL of the page, including the secret.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
                SocketAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            });
        }
        format!("http://{address}/{}/", self.secret)
    }

    fn authorize(&self, path: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        let secret = path.strip_prefix('/').and_then(|path| path.split('/').next());
        let matches = self.secret.as_bytes().ct_eq(secret.unwrap_or_default().as_bytes());
        if !bool::from(matches) {
            return Err(StatusCode::NOT_FOUND);
        }
        let host = single(headers, &HOST).ok_or(StatusCode::FORBIDDEN)?;
        let is_own_host = host.is_some_and(|host| self.is_own_host(host));
        let origin = single(headers, &ORIGIN).ok_or(StatusCode::FORBIDDEN)?;
        let is_same_origin = origin.is_none_or(|origin| origin.strip_prefix("http://") == host);
        if is_own_host && is_same_origin { Ok(()) } else { Err(StatusCode::FORBIDDEN) }
    }

    /// Whether a `Host` header names this server. IP addresses are safe from DNS rebinding; names other than
    /// `localhost` are not.
    fn is_own_host(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_known = match name.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        is_known && port == self.address.port().to_string()
    }
}

/// Returns the header of this name. The outer `None` means that it is repeated or not text.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return None;
    }
    first.map(HeaderValue::to_str).transpose().ok()
}

/// Middleware that authorizes every request and sets the security headers.
pub async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match guard.authorize(request.uri().path(), request.headers()) {
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

    fn status(guard: &Guard, path: &str, pairs: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers
                .append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        guard.authorize(path, &headers).map_or_else(|status| status.as_u16(), |()| 200)
    }

    #[test]
    fn unauthorized_requests_are_rejected() {
        let guard = Guard::new(([127, 0, 0, 1], 4000).into()).unwrap();
        let path = format!("/{}/api/1/models", guard.secret);
        let host = ("host", "127.0.0.1:4000");
        assert_eq!(guard.secret.len(), 32);
        assert_eq!(status(&guard, &path, &[host]), 200);
        for secret in ["", "/", "/api/1/models", "/00000000000000000000000000000000/", &path[..20]]
        {
            assert_eq!(status(&guard, secret, &[host]), 404, "{secret}");
        }
        for good in ["localhost:4000", "LOCALHOST:4000", "127.0.0.2:4000", "[::1]:4000"] {
            assert_eq!(status(&guard, &path, &[("host", good)]), 200, "{good}");
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
            assert_eq!(status(&guard, &path, &[("host", bad)]), 403, "{bad}");
        }
        assert_eq!(status(&guard, &path, &[]), 403);
        assert_eq!(status(&guard, &path, &[host, host]), 403);
        assert_eq!(status(&guard, &path, &[host, ("origin", "http://127.0.0.1:4000")]), 200);
        for bad in [
            "null",
            "https://127.0.0.1:4000",
            "http://localhost:4000",
            "http://127.0.0.1",
            "http://evil",
        ] {
            assert_eq!(status(&guard, &path, &[host, ("origin", bad)]), 403, "{bad}");
        }
    }

    #[test]
    fn listening_on_all_interfaces_allows_ip_addresses_only() {
        let guard = Guard::new(([0, 0, 0, 0], 4000).into()).unwrap();
        let path = format!("/{}/", guard.secret);
        assert!(guard.url().starts_with("http://127.0.0.1:4000/"));
        assert_eq!(status(&guard, &path, &[("host", "192.168.1.2:4000")]), 200);
        assert_eq!(status(&guard, &path, &[("host", "machine.lan:4000")]), 403);
    }
}
