//! Names of unfinished files, and the removal of abandoned ones.
//!
//! ```text
//! .NAME.RANDOM.gguf-kit-part      RANDOM: twelve letters and digits
//! .NAME.unfinished.gguf-kit-part  a write that can be resumed
//! ```
//!
//! NAME ends at the last dot before the suffix, however many dots NAME has, so an unfinished file
//! belongs to one target only.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use crate::file_id::FileId;
use crate::paths::verbatim;

/// Suffix of every unfinished file.
const SUFFIX: &str = ".gguf-kit-part";

/// Length of the random part; no fixed word has this length.
const RANDOM: usize = 12;

/// Word in place of the random part.
const RESUMABLE: &str = "unfinished";

/// Returns the directory of a target and its unfinished files.
pub(super) fn directory(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the prefix of the names of a target's unfinished files.
fn prefix(target: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Returns the name, without directory, of the resumable unfinished file of a target.
pub fn unfinished_name(target: &Path) -> OsString {
    let mut name = prefix(target);
    name.push(RESUMABLE);
    name.push(SUFFIX);
    name
}

/// Returns the path to blame if a hidden file cannot be created: the hidden file if something is in
/// its place, otherwise the file that the user named.
pub fn conflicting_path<'p>(hidden: &'p Path, visible: &'p Path) -> &'p Path {
    if hidden.symlink_metadata().is_ok() { hidden } else { visible }
}

/// Creates and locks an unfinished file with these permissions, reduced by the umask.
pub(super) fn create(target: &Path, mode: u32) -> std::io::Result<NamedTempFile> {
    let prefix = prefix(target);
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    loop {
        // Drop the name of the unfinished file from the error: it means nothing to the user.
        let file = builder
            .make_in(verbatim(directory(target)), |path| create_new(path, mode))
            .map_err(|fault| fault.kind())?;
        // The lock shows other processes that the file is being written. On a file system without
        // locks, nothing is ever removed.
        if file.as_file().lock().is_err() || file.path().exists() {
            return Ok(file);
        }
        // Another writer took it for abandoned and removed it before it was locked.
    }
}

/// Creates a file. Unlike that of `tempfile`, on Windows it does not have the attribute that asks the
/// system to keep it in memory.
fn create_new(path: &Path, mode: u32) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Whether a file name, without directory, is that of an unfinished file of any target.
pub fn is_unfinished(name: &OsStr) -> bool {
    let middle = name.as_encoded_bytes().strip_suffix(SUFFIX.as_bytes());
    let point = middle.and_then(|middle| middle.iter().rposition(|&byte| byte == b'.'));
    middle.zip(point).is_some_and(|(middle, point)| {
        let (target, word) = (&middle[..point], &middle[point + 1..]);
        let random = word.len() == RANDOM && word.iter().all(u8::is_ascii_alphanumeric);
        target.len() > 1 && target[0] == b'.' && (random || word == RESUMABLE.as_bytes())
    })
}

/// Removes abandoned files of killed writers to the same target: regular files with the owner of
/// `owner` whose lock is free. Errors are ignored: they do not affect the output.
pub(super) fn remove_abandoned(target: &Path, owner: &File) {
    let Ok(entries) = directory(target).read_dir() else { return };
    let prefix = prefix(target);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let word = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        // Another dot means that the file belongs to another target.
        let is_target = is_unfinished(&name)
            && word.is_some_and(|word| !word[..word.len() - SUFFIX.len()].contains(&b'.'));
        if is_target
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && FileId::is_at(&file, &entry.path())
            && same_owner(&file, owner)
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
fn same_owner(a: &File, b: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if a.uid() == b.uid())
}

#[cfg(not(unix))]
fn same_owner(_: &File, _: &File) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_names_belong_to_one_target() {
        let is = |name: &str| is_unfinished(OsStr::new(name));
        assert!(is(".m.gguf.abcDEF012345.gguf-kit-part"));
        assert!(is(".m.gguf.unfinished.gguf-kit-part"));
        for other in [
            ".m.gguf.abcDEF01234.gguf-kit-part",
            ".m.gguf.abcDEF-12345.gguf-kit-part",
            ".m.gguf.users-own-file.part",
            "m.gguf.abcDEF012345.gguf-kit-part",
            ".unfinished.gguf-kit-part",
            "..gguf-kit-part",
            ".gguf-kit-part",
            "",
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
