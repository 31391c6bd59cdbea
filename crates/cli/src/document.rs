//! What `--json` prints: documents that say by which schema they are written, and errors among them.
//!
//! The schemas are in `docs/json/`, one per command; `docs/json.md` says what all have in common.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gguf_kit::json::with_schema;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::launch;

/// Whether the document of this run is printed.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints the one document of a command, such as `inspect/1`: the name of the schema and its version.
pub fn print(out: &mut impl Write, schema: &str, document: Json) -> io::Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    writeln!(out, "{:#}", with_schema(schema, document))
}

/// Prints the document of one of the files that a command takes: of several, each on a line.
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

/// Prints one of several documents, each on a line.
pub fn print_line(out: &mut impl Write, schema: &str, document: Json) -> io::Result<()> {
    write!(out, "{}", line(schema, document))
}

/// One of several documents as a line.
pub fn line(schema: &str, document: Json) -> String {
    format!("{}\n", with_schema(schema, document))
}

/// Whether the command line asks for JSON, also if it cannot be understood.
pub fn is_wanted() -> bool {
    let mut words = launch::words().iter().take_while(|word| *word != "--");
    words.any(|word| word == OsStr::new("--json"))
}

/// Prints an error where a program waits for a document, which it then does not get. Nothing if it
/// has got one already: the exit code says the rest.
pub fn print_error(failure: &Failure) {
    if !is_wanted() || PRINTED.load(Ordering::Relaxed) {
        return;
    }
    if let Some(error) = failure.to_json() {
        // Who does not read it is told by the exit code.
        let _ = print(&mut io::stdout().lock(), "error/1", json!({ "error": error }));
    }
}

/// Prints the error of one of several files among the documents of the others.
pub fn print_error_line(failure: &Failure) {
    if let Some(error) = failure.to_json().filter(|_| is_wanted()) {
        let _ = print_line(&mut io::stdout().lock(), "error/1", json!({ "error": error }));
    }
}
