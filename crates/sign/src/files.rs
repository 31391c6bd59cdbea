//! Files that a signature covers.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_store::{Progress, ShardSet};
use sha2::{Digest, Sha256};

/// Names that are never signed in a directory.
pub const IGNORED: [&str; 4] = [".git", ".gitattributes", ".github", ".gitignore"];

/// Files of a model, in a directory or alone.
#[derive(Clone, Debug)]
pub struct SignedFiles {
    /// Name of the model.
    pub(crate) model: String,
    /// Names with their paths, sorted by name; `.` for a model in a single file.
    pub(crate) files: Vec<(String, PathBuf)>,
    /// Whether the files are a whole directory.
    pub(crate) is_directory: bool,
}

impl SignedFiles {
    /// Finds the files of a model: all files below a directory, or a file with its shards. `signature` is not among them.
    ///
    /// # Errors
    /// If a file is missing or a directory cannot be read; `signature-link` for a symbolic link in a directory.
    pub fn find(path: &Path, signature: Option<&Path>) -> Result<Self, Error> {
        let name = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            // `.` and `..` have no name.
            name.or_else(|| {
                Some(path.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
            })
            .unwrap_or_default()
        };
        if path.is_dir() {
            let mut files = Vec::new();
            list(path, "", &mut files)?;
            files.retain(|(_, file)| signature.is_none_or(|signature| !is_same(file, signature)));
            files.sort();
            return Ok(Self { model: name(path), files, is_directory: true });
        }
        let shards = ShardSet::find(path)?;
        let files = match shards.paths() {
            [file] => vec![(".".to_owned(), file.clone())],
            shards => shards.iter().map(|file| (name(file), file.clone())).collect(),
        };
        let model = match &files[..] {
            [_] => name(path),
            _ => path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .map_or_else(|| name(Path::new(".")), name),
        };
        Ok(Self { model, files, is_directory: false })
    }

    /// Returns the names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| if name == "." { &*self.model } else { name })
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(_, path)| path.as_path())
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// Lists the files below a directory, with `/` in their names.
fn list(directory: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
    let unreadable = |fault| Error::read(directory, fault);
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
            return Err(Error::input(
                "signature-link",
                &path,
                "the name is not UTF-8",
                "rename the file",
            ));
        };
        if prefix.is_empty() && IGNORED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_symlink() {
            let help = "replace it by the file: a signature covers files";
            return Err(Error::input("signature-link", &path, "is a symbolic link", help));
        } else if kind.is_dir() {
            list(&path, &format!("{name}/"), files)?;
        } else if kind.is_file() {
            files.push((name, path));
        }
    }
    Ok(())
}

/// Returns the SHA-256 of a file.
///
/// # Errors
/// If the file cannot be read, or `progress` stopped the work.
pub fn digest(path: &Path, progress: &dyn Progress) -> Result<[u8; 32], Error> {
    const CHUNK: usize = 1 << 20;
    let unreadable = |fault| Error::read(path, fault);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        let len = file.read(&mut buffer).map_err(unreadable)?;
        if len == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(&buffer[..len]);
        progress.step(len as u64)?;
    }
}
