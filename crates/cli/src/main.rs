//! The `gguf` binary.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gguf_cli::Launch;

fn main() -> ExitCode {
    let launch = executable().map(|file| Launch { file, words: Vec::new() });
    // Expands `*.gguf` on Windows, where shells leave that to programs.
    gguf_cli::run(wild::args_os().collect(), launch).into()
}

/// Returns the path of this executable; derives it from the command line if there is no `/proc`, as in a bare
/// chroot.
fn executable() -> Option<PathBuf> {
    env::current_exe().ok().or_else(|| {
        let called = PathBuf::from(env::args_os().next()?);
        if called.parent() != Some(Path::new("")) {
            return std::path::absolute(called).ok();
        }
        let path = env::var_os("PATH")?;
        env::split_paths(&path).map(|folder| folder.join(&called)).find(|file| file.is_file())
    })
}
