//! The page: the files of `dist`, which are part of the program.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::answer::Failure;

/// Names and bytes, in order of name.
const FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/dist.rs"));

/// What browsers take files for, by how their names end. Others are offered to be saved.
const TYPES: &[(&str, &str)] = &[
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

/// The file of this name; of the empty one the page itself.
pub fn file(name: &str) -> Result<Response, Failure> {
    let name = if name.is_empty() { "index.html" } else { name };
    let found = FILES.binary_search_by(|(other, _)| other.cmp(&name));
    let (_, bytes) = FILES[found.map_err(|_| Failure::nothing_here())?];
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = TYPES.iter().find(|(known, _)| *known == ending);
    let content_type = known.map_or("application/octet-stream", |(_, of)| of);
    Ok(([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")], bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type_and_can_be_found() {
        assert!(FILES.is_sorted_by_key(|(name, _)| name));
        for (name, bytes) in FILES {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            assert!(TYPES.iter().any(|(known, _)| *known == ending), "{name}");
            assert!(!bytes.is_empty(), "{name}");
            assert!(file(name).is_ok(), "{name}");
        }
        assert!(file("").is_ok());
        for wrong in ["../Cargo.toml", "/index.html", "index", "nothing.html"] {
            assert!(file(wrong).is_err(), "{wrong}");
        }
    }
}
