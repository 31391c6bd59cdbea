//! Source of tokenizer files: a directory, or the files of an export in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gguf::Error;

/// Source of files.
pub(crate) enum Folder<'a> {
    /// A directory.
    Disk(&'a Path),
    /// Contents in memory, by name.
    Memory(BTreeMap<&'a str, &'a [u8]>),
}

impl Folder<'_> {
    /// Returns the path of a file for errors.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Disk(dir) => dir.join(name),
            Self::Memory(_) => PathBuf::from(name),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Disk(dir) => dir.join(name).is_file(),
            Self::Memory(files) => files.contains_key(name),
        }
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Result<Cow<'_, [u8]>, Error> {
        let path = self.path(name);
        let content = match self {
            Self::Disk(_) => std::fs::read(&path).map(Cow::Owned),
            Self::Memory(files) => match files.get(name) {
                Some(bytes) => Ok(Cow::Borrowed(*bytes)),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        };
        content.map_err(|source| Error::read(&path, source))
    }

    /// Reads at most `len` bytes of a file. Returns no bytes if the file cannot be read.
    pub fn start(&self, name: &str, len: u64) -> Vec<u8> {
        let mut start = Vec::new();
        match self {
            Self::Disk(dir) => {
                let read = std::fs::File::open(dir.join(name))
                    .and_then(|file| file.take(len).read_to_end(&mut start));
                if read.is_err() {
                    start.clear();
                }
            }
            Self::Memory(files) => {
                let bytes = files.get(name).copied().unwrap_or_default();
                start.extend(bytes.iter().take(usize::try_from(len).unwrap_or(usize::MAX)));
            }
        }
        start
    }

    /// Reads a text file.
    pub fn text(&self, name: &str) -> Result<String, Error> {
        String::from_utf8(self.read(name)?.into_owned()).map_err(|_| {
            Error::input(
                "vocabulary-damaged",
                &self.path(name),
                "is not valid UTF-8",
                "download it again",
            )
        })
    }

    /// Returns the names of the files with an extension in the directory `inner`, prefixed by `inner`. Returns an
    /// empty list if there is no such directory.
    pub fn with_extension(&self, inner: &str, extension: &str) -> Result<Vec<String>, Error> {
        let has_extension = |path: &Path| path.extension().is_some_and(|found| found == extension);
        let mut names = Vec::new();
        match self {
            Self::Disk(dir) => {
                let path = dir.join(inner);
                if !path.is_dir() {
                    return Ok(names);
                }
                let entries = std::fs::read_dir(&path);
                for entry in entries.map_err(|source| Error::read(&path, source))? {
                    let entry = entry.map_err(|source| Error::read(&path, source))?;
                    let name = Path::new(inner).join(entry.file_name());
                    // No program writes names that are not Unicode.
                    if let Some(name) = name.to_str().filter(|name| has_extension(Path::new(name)))
                    {
                        names.push(name.to_owned());
                    }
                }
            }
            Self::Memory(files) => {
                let paths = files.keys().map(|name| Path::new(*name));
                let inside = paths.filter(|path| path.parent() == Some(Path::new(inner)));
                let matching = inside.filter(|path| has_extension(path));
                names.extend(matching.map(|path| path.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }
}
