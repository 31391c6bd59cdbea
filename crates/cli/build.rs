//! What `gguf --version` says: the version, and the commit where this is built from a git tree.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let full = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=GGUF_VERSION={full}");
}

/// The commit and its day. None of a package that happens to be unpacked within another tree: its
/// files are not part of that.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Both change with the commit; a path that is not there would have this run each time.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--format=%h %cs"])
}

/// What git says, without the line break; `None` if it says no.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
