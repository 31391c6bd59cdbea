//! Location of the reference data.

use std::path::PathBuf;

/// Returns a path within the reference data; `None`, with a message, if the data are not available.
pub fn reference(path: &str) -> Option<PathBuf> {
    match std::env::var_os("GGUF_TEST_DATA") {
        Some(data) => Some(PathBuf::from(data).join(path)),
        None => {
            eprintln!("SKIPPED: GGUF_TEST_DATA is not set, {path} is not compared");
            None
        }
    }
}
