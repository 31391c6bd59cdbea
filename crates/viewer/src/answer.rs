//! What requests are answered with.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gguf_kit::Error;
use serde_json::{Value as Json, json};

/// A request that is not met: a status, and an error for programs.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: StatusCode,
    pub error: Json,
}

/// What a request is answered with.
pub enum Answer {
    /// A document.
    Json(Json),
    /// Bytes of a type, with further headers.
    Bytes(&'static str, Vec<u8>, Vec<(&'static str, String)>),
}

/// What most functions here give.
pub type Answered = Result<Answer, Failure>;

impl Failure {
    /// The request is at fault.
    pub fn request(what: impl Into<Box<str>>) -> Self {
        Error::request("request-invalid", what, "").into()
    }

    /// There is no such address.
    pub fn nothing_here() -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::request("there is nothing at this address") }
    }

    /// The file of a model has changed.
    pub fn changed(what: impl Into<Box<str>>) -> Self {
        let error = Error::request("file-changed", what, "");
        Self { status: StatusCode::CONFLICT, error: gguf_kit::json::error(&error) }
    }

    /// The work came to an end that it should not.
    pub fn broken(what: &str) -> Self {
        let error = json!({
            "code": "environment", "fault": "environment", "message": what, "file": null,
            "offset": null, "key": null, "tensor": null, "help": "",
        });
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, error }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        use gguf::Fault::{Caller, Environment, Input, Interrupted};
        let status = match (error.fault(), error.code()) {
            (_, "name-not-found") => StatusCode::NOT_FOUND,
            // What the model does not have is no fault of the request.
            (_, "codec-missing" | "shapes-differ" | "edit-refused") | (Input, _) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            (Caller, _) => StatusCode::BAD_REQUEST,
            (Environment | Interrupted, _) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, error: gguf_kit::json::error(&error) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut error = self.error;
        if error.get("line").is_none() {
            error["line"] = Json::Null;
        }
        let body = json!({ "error": error }).to_string();
        (self.status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
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

impl Answer {
    /// Plain bytes.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes("application/octet-stream", bytes, Vec::new())
    }

    /// Numbers, little-endian.
    pub fn floats(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
        numbers.into_iter().flat_map(f32::to_le_bytes).collect()
    }
}

/// Bytes as two hexadecimal digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text as far as it is shown: at most so many characters of it. What is no UTF-8 is replaced.
pub fn cut(bytes: &[u8], most: usize) -> String {
    // No character has more than four bytes: nothing beyond is looked at.
    let start = &bytes[..bytes.len().min(4 * most)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(most) {
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
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("abc".as_bytes(), 5), "abc");
        assert_eq!(cut("äöü".as_bytes(), 2), "äö");
        assert_eq!(cut(&[0x61, 0xff], 5), "a\u{fffd}");
        assert_eq!(cut("\u{1f600}".repeat(1000).as_bytes(), 3), "\u{1f600}".repeat(3));
        assert_eq!(hex(&[0, 0xab]), "00ab");
    }
}
