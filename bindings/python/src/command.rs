//! The `gguf` command.

use std::ffi::OsString;
use std::path::PathBuf;

use gguf_cli::Launch;
use pyo3::prelude::*;

/// Runs a command line and returns the exit code. `relaunch` is the command line that starts this program again.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>, relaunch: Vec<OsString>) -> u8 {
    let mut relaunch = relaunch.into_iter();
    let launch =
        relaunch.next().map(|file| Launch { file: PathBuf::from(file), words: relaunch.collect() });
    py.detach(|| gguf_cli::run(words, launch))
}
