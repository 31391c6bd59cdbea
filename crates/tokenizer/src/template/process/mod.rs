//! Rendering in a separate process: the protocol.
//!
//! A process handles one request. The request is JSON and ends with the input of the process. The
//! response is a frame for the template, which reports whether it parses, and one frame per
//! conversation, sent as soon as it is rendered; after a parse error or an exceeded limit, no frame
//! follows. A frame is a line of JSON, `{"Ok":17}` or `{"Err":...}`, and that many bytes of text.

mod child;
mod instance;
#[cfg(not(target_family = "wasm"))]
mod parent;

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};

pub(super) use child::serve;
pub(super) use instance::{Call, run as run_in_instance};
#[cfg(not(target_family = "wasm"))]
pub(super) use parent::run;
use serde::{Deserialize, Serialize};

use super::{Context, Error, Limits, TemplateSource};

/// Maximum length of a frame's first line: a message has up to 2000 bytes, each up to 6 bytes in
/// JSON.
const MAX_LINE_LEN: u64 = 32 << 10;

/// Request to a rendering process.
#[derive(Serialize, Deserialize)]
struct Request<'a> {
    limits: Limits,
    source: Cow<'a, TemplateSource>,
    contexts: Cow<'a, [Context]>,
}

/// One frame of the response.
type Frame = Result<String, Error>;

fn write_frame(mut output: impl Write, frame: &Frame) -> io::Result<()> {
    let (line, text) = match frame {
        Ok(text) => (Ok(text.len()), text.as_str()),
        Err(error) => (Err(error), ""),
    };
    serde_json::to_writer(&mut output, &line)?;
    output.write_all(b"\n")?;
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Reads the next frame, whose text has at most `text_len` bytes.
fn read_frame(mut input: impl BufRead, text_len: usize) -> io::Result<Frame> {
    let mut line = Vec::new();
    input.by_ref().take(MAX_LINE_LEN).read_until(b'\n', &mut line)?;
    let len = match serde_json::from_slice::<Result<usize, Error>>(&line)? {
        Ok(len) => len,
        Err(error) => return Ok(Err(error)),
    };
    if len > text_len {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut text = vec![0; len];
    input.read_exact(&mut text)?;
    String::from_utf8(text)
        .map(Ok)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
