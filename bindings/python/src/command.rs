//! The command `gguf`, which the package brings along.

use std::ffi::OsString;
use std::path::PathBuf;

use gguf_cli::Launch;
use pyo3::prelude::*;

/// Does what a command line says, and gives the exit code. `again` are the words that start the command once more.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    let mut again = again.into_iter();
    let launch =
        again.next().map(|file| Launch { file: PathBuf::from(file), words: again.collect() });
    py.detach(|| gguf_cli::run(words, launch))
}
