//! Matrices that are made, in a file until all are.
//!
//! ```text
//! "GGUFCALI"  SHA-256 of what the work is, 64 digits
//! then per tensor: length of the name u32  the name  length u64  CRC-32 of the bytes  the bytes
//! ```

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf_store::{LocalFile, Source};
use tempfile::TempDir;

use crate::{Error, digest, scratch};

const MAGIC: &[u8; 8] = b"GGUFCALI";

/// Bytes of a name at most, as in headers.
const NAME: usize = 65_535;

/// What becomes of matrices when the work is interrupted.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'k> {
    /// They are lost.
    Nothing,
    /// They stay beside the output of this path, for the next run of the same work. `anew` is called if there are
    /// some of other work, which are thrown away.
    At { output: &'k Path, anew: &'k dyn Fn() },
}

/// The file.
pub(crate) struct MadeFile {
    path: PathBuf,
    file: File,
    /// Where the bytes of each tensor stand, and how many.
    places: HashMap<String, (u64, u64)>,
    end: u64,
    scratch: Option<TempDir>,
}

impl MadeFile {
    /// The file of a piece of work, with what an earlier run has made.
    pub fn open(keep: Keep<'_>, work: &str) -> Result<Self, Error> {
        let (path, scratch) = match keep {
            Keep::Nothing => {
                let scratch = scratch::directory()?;
                (scratch.path().join("calibrated"), Some(scratch))
            }
            Keep::At { output, .. } => {
                let mut path = output.as_os_str().to_owned();
                path.push(".calibrated");
                (path.into(), None)
            }
        };
        let failed = |source| Error::environment("write", &path, source);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        if file.try_lock().is_err() {
            let what = format!("another run writes {}", path.display());
            return Err(Error::request("output-busy", what, "wait for it, or name another output"));
        }
        let mut this = Self { path, file, places: HashMap::new(), end: 0, scratch };
        let head = [&MAGIC[..], digest::sha256(work.as_bytes()).as_bytes()].concat();
        let is_ours = this.read(&head).map_err(|fault| this.failed(fault))?;
        if !is_ours {
            let len = this.file.metadata().map_err(|fault| this.failed(fault))?.len();
            if let (Keep::At { anew, .. }, 1..) = (keep, len) {
                let mut magic = [0; MAGIC.len()];
                let read = this.file.rewind().and_then(|()| this.file.read_exact(&mut magic));
                if read.is_err() || magic != *MAGIC {
                    let what = format!("{} is no file of an earlier run", this.path.display());
                    return Err(Error::request("output-refused", what, "name another output"));
                }
                anew();
            }
            this.begin(&head).map_err(|fault| this.failed(fault))?;
        }
        Ok(this)
    }

    fn failed(&self, fault: std::io::Error) -> Error {
        Error::environment("write", &self.path, fault)
    }

    fn begin(&mut self, head: &[u8]) -> std::io::Result<()> {
        self.places.clear();
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(head)?;
        self.end = head.len() as u64;
        Ok(())
    }

    /// Reads what is there; `false` if it is of other work. The last tensor may be torn: it is made again.
    fn read(&mut self, head: &[u8]) -> std::io::Result<bool> {
        let mut left = self.file.metadata()?.len();
        self.file.rewind()?;
        let mut reader = BufReader::new(&self.file);
        let mut found = vec![0; head.len()];
        if left < head.len() as u64 {
            return Ok(false);
        }
        reader.read_exact(&mut found)?;
        if found != head {
            return Ok(false);
        }
        left -= head.len() as u64;
        self.end = head.len() as u64;
        let mut bytes = Vec::new();
        loop {
            let mut len = [0; 4];
            if left < 4 {
                break;
            }
            reader.read_exact(&mut len)?;
            let name_len = u32::from_le_bytes(len) as usize;
            if name_len > NAME || left < 4 + name_len as u64 + 12 {
                break;
            }
            let mut name = vec![0; name_len];
            reader.read_exact(&mut name)?;
            let (mut len, mut check) = ([0; 8], [0; 4]);
            reader.read_exact(&mut len)?;
            reader.read_exact(&mut check)?;
            let len = u64::from_le_bytes(len);
            left -= 16 + name_len as u64;
            if len > left {
                break;
            }
            bytes.resize(len as usize, 0);
            reader.read_exact(&mut bytes)?;
            left -= len;
            let Ok(name) = String::from_utf8(name) else { break };
            if crc32fast::hash(&bytes).to_le_bytes() != check {
                break;
            }
            let start = self.end + 16 + name_len as u64;
            self.places.insert(name, (start, len));
            self.end = start + len;
        }
        Ok(true)
    }

    /// Where values of the text may be kept.
    pub fn directory(&self) -> &Path {
        match &self.scratch {
            Some(scratch) => scratch.path(),
            None => match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            },
        }
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let head = [
            &(name.len() as u32).to_le_bytes()[..],
            name.as_bytes(),
            &(bytes.len() as u64).to_le_bytes(),
            &crc32fast::hash(bytes).to_le_bytes(),
        ];
        let head = head.concat();
        let mut write = || {
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.write_all(&head)?;
            self.file.write_all(bytes)
        };
        write().map_err(|fault| self.failed(fault))?;
        let start = self.end + head.len() as u64;
        self.places.insert(name.to_owned(), (start, bytes.len() as u64));
        self.end = start + bytes.len() as u64;
        Ok(())
    }

    /// The bytes of a tensor, if there are any.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some((start, len)) = self.places.get(name) else { return Ok(None) };
        let mut bytes = vec![0; *len as usize];
        let mut file = &self.file;
        let read = file.seek(SeekFrom::Start(*start)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|fault| Error::environment("read", &self.path, fault))?;
        Ok(Some(bytes))
    }

    /// Where the bytes of a tensor begin.
    pub fn place(&self, name: &str) -> Option<u64> {
        self.places.get(name).map(|(start, _)| *start)
    }

    /// The file as it is read; nothing more is added.
    pub fn source(&self) -> Result<Arc<dyn Source>, Error> {
        // A reader locks it, too.
        self.file.unlock().map_err(|fault| self.failed(fault))?;
        Ok(Arc::new(LocalFile::open(&self.path)?))
    }

    /// Everything was written to its place.
    pub fn remove(self) -> Result<(), Error> {
        match self.scratch {
            Some(_) => Ok(()),
            None => std::fs::remove_file(&self.path).map_err(|fault| self.failed(fault)),
        }
    }
}
