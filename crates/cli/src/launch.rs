//! How this program was started, and how it is started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::failure::Failure;

/// What starts this program again.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file to start.
    pub file: PathBuf,
    /// The words before those of a command: none where the file is the program itself.
    pub words: Vec<OsString>,
}

static STARTED: OnceLock<(Vec<OsString>, Option<Launch>)> = OnceLock::new();

/// Keeps how the program was started.
pub fn begin(words: &[OsString], launch: Option<Launch>) {
    let _ = STARTED.set((words.to_vec(), launch));
}

/// The words of the command line, after the name of the program.
pub fn words() -> &'static [OsString] {
    STARTED.get().and_then(|(words, _)| words.get(1..)).unwrap_or_default()
}

/// What starts this program again.
pub fn again() -> Result<&'static Launch, Failure> {
    let launch = STARTED.get().and_then(|(_, launch)| launch.as_ref());
    launch.ok_or_else(|| {
        Failure::Environment("cannot find the program itself: call it by its whole path".into())
    })
}

/// The program as one file, to which links can be made.
pub fn file() -> Result<PathBuf, Failure> {
    let launch = again()?;
    let alone = launch.words.is_empty().then(|| launch.file.canonicalize().ok()).flatten();
    // A script that starts it was called by its name.
    let script = || STARTED.get()?.0.first().map(PathBuf::from)?.canonicalize().ok();
    let file = alone.or_else(script);
    file.ok_or_else(|| {
        Failure::Environment("cannot find the program itself: call it by its whole path".into())
    })
}
