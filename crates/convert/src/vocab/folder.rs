//! Where tokenizer files are read from: a directory, or an export that is not written yet.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gguf::Error;

/// Files by name.
pub(crate) enum Folder<'a> {
    /// A directory.
    Disk(&'a Path),
    /// Contents that are at hand.
    Memory(BTreeMap<&'a str, &'a [u8]>),
}

impl Folder<'_> {
    /// How errors call a file.
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

    /// The content of a file.
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

    /// At most so many bytes of a file; none of one that cannot be read.
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

    /// The content of a text file.
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

    /// The files in the directory `inner` with an extension, by name; none if there is no such
    /// directory. Names begin with that of the directory.
    pub fn with_extension(&self, inner: &str, extension: &str) -> Result<Vec<String>, Error> {
        let is_wanted = |path: &Path| path.extension().is_some_and(|found| found == extension);
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
                    // Names that are not Unicode are nobody's.
                    if let Some(name) = name.to_str().filter(|name| is_wanted(Path::new(name))) {
                        names.push(name.to_owned());
                    }
                }
            }
            Self::Memory(files) => {
                let paths = files.keys().map(|name| Path::new(*name));
                let inside = paths.filter(|path| path.parent() == Some(Path::new(inner)));
                let wanted = inside.filter(|path| is_wanted(path));
                names.extend(wanted.map(|path| path.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }
}
