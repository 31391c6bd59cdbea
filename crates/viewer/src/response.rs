//! Responses and errors of the API.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response as HttpResponse};
use gguf_kit::Error;
use serde_json::{Value as Json, json};

/// An error response: its HTTP status and the error document.
#[derive(Clone, Debug)]
pub struct ApiError {
    pub status: StatusCode,
    pub error: Json,
}

/// The body of a successful response.
pub enum Response {
    Json(Json),
    /// Bytes of a content type, with additional headers.
    Bytes(&'static str, Vec<u8>, Vec<(&'static str, String)>),
}

pub type ApiResult = Result<Response, ApiError>;

impl ApiError {
    /// Returns 400: the request is invalid.
    pub fn bad_request(message: impl Into<Box<str>>) -> Self {
        Error::request("request-invalid", message, "").into()
    }

    /// Returns 404: the address does not exist.
    pub fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::bad_request("no such address") }
    }

    /// Returns 409: a file of the model has changed since it was opened.
    pub fn file_changed(message: impl Into<Box<str>>) -> Self {
        let error = Error::request("file-changed", message, "");
        Self { status: StatusCode::CONFLICT, error: gguf_kit::json::error(&error) }
    }

    /// Returns 500: the server failed.
    pub fn internal(message: &str) -> Self {
        let error = json!({
            "code": "environment", "fault": "environment", "message": message, "file": null,
            "offset": null, "key": null, "tensor": null, "help": "",
        });
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, error }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        use gguf::Fault::{Caller, Environment, Input, Interrupted};
        let status = match (error.fault(), error.code()) {
            (_, "name-not-found") => StatusCode::NOT_FOUND,
            // The request is valid, but the model cannot satisfy it.
            (_, "codec-missing" | "shapes-differ" | "edit-refused") | (Input, _) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            (Caller, _) => StatusCode::BAD_REQUEST,
            (Environment | Interrupted, _) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, error: gguf_kit::json::error(&error) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> HttpResponse {
        let mut error = self.error;
        if error.get("line").is_none() {
            error["line"] = Json::Null;
        }
        let body = json!({ "error": error }).to_string();
        (self.status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

impl IntoResponse for Response {
    fn into_response(self) -> HttpResponse {
        match self {
            Self::Json(document) => {
                ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
            }
            Self::Bytes(content_type, bytes, headers) => {
                let mut response = ([(CONTENT_TYPE, content_type)], bytes).into_response();
                for (name, value) in headers {
                    if let Ok(value) = value.parse() {
                        response.headers_mut().insert(name, value);
                    }
                }
                response
            }
        }
    }
}

impl Response {
    /// Returns an `application/octet-stream` response.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes("application/octet-stream", bytes, Vec::new())
    }

    /// Encodes F32 values as little-endian bytes.
    pub fn f32_bytes(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
        values.into_iter().flat_map(f32::to_le_bytes).collect()
    }
}

/// Formats each byte as two hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the first `max_chars` characters of a text. Invalid UTF-8 is replaced.
pub fn truncated(bytes: &[u8], max_chars: usize) -> String {
    // A character has at most four bytes, so later bytes cannot matter.
    let start = &bytes[..bytes.len().min(4 * max_chars)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => text[..end].to_owned(),
        None if start.len() < bytes.len() => {
            text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
        }
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_at_character_boundaries() {
        assert_eq!(truncated("abc".as_bytes(), 5), "abc");
        assert_eq!(truncated("äöü".as_bytes(), 2), "äö");
        assert_eq!(truncated(&[0x61, 0xff], 5), "a\u{fffd}");
        assert_eq!(truncated("\u{1f600}".repeat(1000).as_bytes(), 3), "\u{1f600}".repeat(3));
        assert_eq!(hex(&[0, 0xab]), "00ab");
    }
}
