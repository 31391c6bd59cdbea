//! Files that are not complete: what they are called, and the end of those that nobody writes any
//! more.
//!
//! ```text
//! .NAME.RANDOM.gguf-kit-part      RANDOM: twelve letters and digits
//! .NAME.unfinished.gguf-kit-part  work that can be gone on with
//! ```
//!
//! The last point before the ending is where NAME ends, whatever points NAME has: no such name can
//! belong to two targets.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// What every unfinished file ends with.
const SUFFIX: &str = ".gguf-kit-part";

/// Characters of the random part: as many as no fixed word has.
const RANDOM: usize = 12;

/// In the place of the random part.
const RESUMABLE: &str = "unfinished";

/// Where the unfinished files of a target are.
pub(super) fn directory(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the names of a target's unfinished files begin with.
fn prefix(target: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// The name, without directory, of work on a target that can be gone on with.
pub fn unfinished_name(target: &Path) -> OsString {
    let mut name = prefix(target);
    name.push(RESUMABLE);
    name.push(SUFFIX);
    name
}

/// Which name a message says where a hidden file of ours cannot be made: its own if something is in its way,
/// else that of the file that the user knows of.
pub fn blamed<'p>(hidden: &'p Path, users: &'p Path) -> &'p Path {
    if hidden.symlink_metadata().is_ok() { hidden } else { users }
}

/// Creates an unfinished file with these permissions, less what the process's umask takes away,
/// and locks it.
pub(super) fn create(target: &Path, mode: u32) -> std::io::Result<NamedTempFile> {
    let prefix = prefix(target);
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    loop {
        // The reason without the name of the unfinished file, which says nothing to the user.
        let file = builder.tempfile_in(directory(target)).map_err(|fault| fault.kind())?;
        // The lock tells others that somebody is still writing. Where there are no locks, nobody
        // can hold one, and nothing is removed.
        if file.as_file().lock().is_err() || file.path().exists() {
            return Ok(file);
        }
        // Another writer took it for abandoned before it was locked.
    }
}

/// Whether a file name, without directory, is that of an unfinished file, of whatever target.
pub fn is_unfinished(name: &OsStr) -> bool {
    let middle = name.as_encoded_bytes().strip_suffix(SUFFIX.as_bytes());
    let point = middle.and_then(|middle| middle.iter().rposition(|&byte| byte == b'.'));
    middle.zip(point).is_some_and(|(middle, point)| {
        let (target, word) = (&middle[..point], &middle[point + 1..]);
        let random = word.len() == RANDOM && word.iter().all(u8::is_ascii_alphanumeric);
        target.len() > 1 && target[0] == b'.' && (random || word == RESUMABLE.as_bytes())
    })
}

/// Removes what writers of the same target left behind when they were killed: regular files of
/// `owner` that nobody holds the lock of any more. Failing to is no fault of the file to be
/// written.
pub(super) fn remove_abandoned(target: &Path, owner: &File) {
    let Ok(entries) = directory(target).read_dir() else { return };
    let prefix = prefix(target);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let word = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        // A point further on would be one of another target's name.
        let of_target = is_unfinished(&name)
            && word.is_some_and(|word| !word[..word.len() - SUFFIX.len()].contains(&b'.'));
        if of_target
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && is_at(&file, &entry.path())
            && same_owner(&file, owner)
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether an open file is the one that is at this path now.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), path.symlink_metadata()), (Ok(a), Ok(b)) if id(&a) == id(&b))
}

/// Whether an open file is the one that is at this path now: an open file keeps its name here.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
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
    fn names_of_unfinished_files_belong_to_one_target() {
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
