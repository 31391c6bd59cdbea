//! Where reference data are.

use std::path::PathBuf;

/// A path within the reference data; `None`, after saying so, if there are none.
pub fn reference(path: &str) -> Option<PathBuf> {
    match std::env::var_os("GGUF_TEST_DATA") {
        Some(data) => Some(PathBuf::from(data).join(path)),
        None => {
            eprintln!("SKIPPED: GGUF_TEST_DATA is not set, {path} is not compared");
            None
        }
    }
}
