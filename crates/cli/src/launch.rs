//! The command that started this program, to start it again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::failure::Failure;

/// Command that starts this program again.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Executable.
    pub file: PathBuf,
    /// Arguments before the command; empty if the executable is `gguf` itself.
    pub words: Vec<OsString>,
}

static STARTED: OnceLock<(Vec<OsString>, Option<Launch>)> = OnceLock::new();

/// Records how the program was started.
pub fn record(words: &[OsString], launch: Option<Launch>) {
    let _ = STARTED.set((words.to_vec(), launch));
}

/// Returns the arguments after the program name.
pub fn words() -> &'static [OsString] {
    STARTED.get().and_then(|(words, _)| words.get(1..)).unwrap_or_default()
}

/// Command that starts this program again.
pub fn command() -> Result<&'static Launch, Failure> {
    let launch = STARTED.get().and_then(|(_, launch)| launch.as_ref());
    launch.ok_or_else(|| {
        Failure::Environment(
            "cannot locate the gguf executable; call it by its absolute path".into(),
        )
    })
}

/// Returns the executable that links can point to.
pub fn file() -> Result<PathBuf, Failure> {
    let launch = command()?;
    let alone = launch.words.is_empty().then(|| launch.file.canonicalize().ok()).flatten();
    // A launcher script is found by the name under which it was called.
    let script = || STARTED.get()?.0.first().map(PathBuf::from)?.canonicalize().ok();
    let file = alone.or_else(script);
    file.ok_or_else(|| {
        Failure::Environment(
            "cannot locate the gguf executable; call it by its absolute path".into(),
        )
    })
}
