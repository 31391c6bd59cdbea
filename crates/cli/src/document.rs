//! JSON output (`--json`): documents with the name of their schema, and errors.
//!
//! The schemas are in `docs/json/`, one per command; `docs/json.md` describes what they share.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gguf_kit::json::with_schema;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::launch;

/// Whether this run has printed its document.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints the document of a command. `schema` is its name and version, such as `inspect/2`.
pub fn print(out: &mut impl Write, schema: &str, document: Json) -> io::Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    writeln!(out, "{:#}", with_schema(schema, document))
}

/// Prints the document of one of the input files: indented, or as one line if there are several files.
pub fn print_one(
    out: &mut impl Write,
    schema: &str,
    document: Json,
    several: bool,
) -> io::Result<()> {
    match several {
        true => print_line(out, schema, document),
        false => print(out, schema, document),
    }
}

/// Prints a document as one line.
pub fn print_line(out: &mut impl Write, schema: &str, document: Json) -> io::Result<()> {
    write!(out, "{}", line(schema, document))
}

/// Returns a document as one line.
pub fn line(schema: &str, document: Json) -> String {
    format!("{}\n", with_schema(schema, document))
}

/// Whether the command line contains `--json`, even if it does not parse.
pub fn is_wanted() -> bool {
    let mut words = launch::words().iter().take_while(|word| *word != "--");
    words.any(|word| word == OsStr::new("--json"))
}

/// Prints an error document if `--json` is given and no document has been printed yet.
pub fn print_error(failure: &Failure) {
    if !is_wanted() || PRINTED.load(Ordering::Relaxed) {
        return;
    }
    if let Some(error) = failure.to_json() {
        // A reader that is gone still gets the exit code.
        let _ = print(&mut io::stdout().lock(), "error/1", json!({ "error": error }));
    }
}

/// Prints the error document of one of several input files.
pub fn print_error_line(failure: &Failure) {
    if let Some(error) = failure.to_json().filter(|_| is_wanted()) {
        let _ = print_line(&mut io::stdout().lock(), "error/1", json!({ "error": error }));
    }
}
