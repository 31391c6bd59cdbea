//! Absolute paths: in the form that people write, and in the one that the system takes as it is.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the absolute path of a file that exists, with links resolved.
///
/// # Errors
/// If it does not exist.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    // Without the prefix `\\?\` of Windows, unless the path needs it.
    dunce::canonicalize(path).or_else(|fault| match cfg!(windows) && !path.is_symlink() {
        // Some virtual drives do not tell the names of their files.
        true => std::path::absolute(path).and_then(|path| path.metadata().map(|_| path)),
        false => Err(fault),
    })
}

/// Returns a path in the form that has no limit of 260 characters.
#[cfg(unix)]
pub(crate) fn verbatim(path: &Path) -> PathBuf {
    path.to_owned()
}

/// Returns a path in the form that has no limit of 260 characters: `\\?\C:\...` or
/// `\\?\UNC\server\...`.
#[cfg(windows)]
pub(crate) fn verbatim(path: &Path) -> PathBuf {
    use std::ffi::OsString;
    use std::path::{Component, Prefix};
    let Ok(path) = std::path::absolute(path) else { return path.to_owned() };
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else { return path };
    let mut verbatim = OsString::from(r"\\?\");
    match prefix.kind() {
        Prefix::Disk(_) => verbatim.push(prefix.as_os_str()),
        Prefix::UNC(server, share) => {
            verbatim.push(r"UNC\");
            verbatim.push(server);
            verbatim.push(r"\");
            verbatim.push(share);
        }
        _ => return path,
    }
    verbatim.push(components.as_path());
    verbatim.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_have_no_path() {
        let dir = tempfile::tempdir().unwrap();
        let fault = resolve(&dir.path().join("a")).unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::NotFound);
        assert!(resolve(dir.path()).unwrap().is_absolute());
    }

    #[cfg(windows)]
    #[test]
    fn verbatim_paths() {
        let text = |path: &str| verbatim(path.as_ref()).to_str().unwrap().to_owned();
        assert_eq!(text(r"C:/a/../b c\d.gguf"), r"\\?\C:\b c\d.gguf");
        assert_eq!(text(r"\\server\share\a.gguf"), r"\\?\UNC\server\share\a.gguf");
        assert_eq!(text(r"\\?\C:\a"), r"\\?\C:\a");
        assert!(text("a").starts_with(r"\\?\"));
    }
}
