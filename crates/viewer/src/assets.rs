//! Serves the files of `dist`, which are embedded in the binary.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::response::ApiError;

/// Names and contents, sorted by name.
const FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/dist.rs"));

/// Content types by file extension.
const CONTENT_TYPES: &[(&str, &str)] = &[
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webmanifest", "application/manifest+json"),
    ("woff2", "font/woff2"),
];

/// Returns the file of this name, or `index.html` for the empty name.
pub fn file(name: &str) -> Result<Response, ApiError> {
    let name = if name.is_empty() { "index.html" } else { name };
    let found = FILES.binary_search_by(|(other, _)| other.cmp(&name));
    let (_, bytes) = FILES[found.map_err(|_| ApiError::not_found())?];
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = CONTENT_TYPES.iter().find(|(known, _)| *known == extension);
    let content_type = known.map_or("application/octet-stream", |(_, content_type)| content_type);
    Ok(([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")], bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_and_has_a_content_type() {
        assert!(FILES.is_sorted_by_key(|(name, _)| name));
        for (name, bytes) in FILES {
            let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
            assert!(CONTENT_TYPES.iter().any(|(known, _)| *known == extension), "{name}");
            assert!(!bytes.is_empty(), "{name}");
            assert!(file(name).is_ok(), "{name}");
        }
        assert!(file("").is_ok());
        for wrong in ["../Cargo.toml", "/index.html", "index", "nothing.html"] {
            assert!(file(wrong).is_err(), "{wrong}");
        }
    }
}
