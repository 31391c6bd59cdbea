//! Encoded tensors in a file, which allows an interrupted calibration to resume.
//!
//! ```text
//! "GGUFCALI"  SHA-256 of the identity of the work, 64 hexadecimal digits
//! per tensor: length of the name u32, name, length of the bytes u64, CRC-32 of the bytes, padding to a multiple of 64, bytes
//! ```

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Bytes, Error};
use gguf_store::{LocalFile, Source, digest, map_part, scratch};
use tempfile::TempDir;

const MAGIC: &[u8; 8] = b"GGUFCALI";

/// The bytes of a tensor begin at a multiple of this.
const ALIGNMENT: u64 = 64;

/// Maximum length of a name in bytes, as in GGUF headers.
const MAX_NAME: usize = 65_535;

/// Lifetime of the encoded tensors.
#[derive(Clone, Copy)]
pub enum Persistence<'k> {
    /// A temporary file.
    Temporary,
    /// A file beside the output, with which the next run of the same work resumes.
    Beside {
        /// Path of the output.
        output: &'k Path,
        /// Called if tensors of other work are discarded.
        on_restart: &'k dyn Fn(),
    },
}

/// A file of encoded tensors.
pub struct EncodedTensors {
    path: PathBuf,
    file: Arc<File>,
    /// Offset and length of the bytes of each tensor.
    spans: HashMap<String, (u64, u64)>,
    end: u64,
    scratch: Option<TempDir>,
}

impl EncodedTensors {
    /// Opens the file for the work that `identity` identifies, with the tensors of an earlier run.
    ///
    /// # Errors
    /// `output-busy` if another process writes it; `output-refused` if it is another file; if it cannot be written.
    pub fn open(persistence: Persistence<'_>, identity: &str) -> Result<Self, Error> {
        let (path, scratch) = match persistence {
            Persistence::Temporary => {
                let scratch = scratch::directory()?;
                (scratch.path().join("calibrated"), Some(scratch))
            }
            Persistence::Beside { output, .. } => {
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
            let what = format!("another process writes {}", path.display());
            return Err(Error::request("output-busy", what, "wait for it, or name another output"));
        }
        let mut this = Self { path, file: Arc::new(file), spans: HashMap::new(), end: 0, scratch };
        let head = [&MAGIC[..], digest::sha256(identity.as_bytes()).as_bytes()].concat();
        let same_work = this.read(&head).map_err(|fault| this.failed(fault))?;
        if !same_work {
            let len = this.file.metadata().map_err(|fault| this.failed(fault))?.len();
            if let (Persistence::Beside { on_restart, .. }, 1..) = (persistence, len) {
                let mut magic = [0; MAGIC.len()];
                let mut file = &*this.file;
                let read = file.rewind().and_then(|()| file.read_exact(&mut magic));
                if read.is_err() || magic != *MAGIC {
                    let what = format!("{} is not a file of an earlier run", this.path.display());
                    return Err(Error::request("output-refused", what, "name another output"));
                }
                on_restart();
            }
            this.begin(&head).map_err(|fault| this.failed(fault))?;
        }
        Ok(this)
    }

    fn failed(&self, fault: std::io::Error) -> Error {
        Error::environment("write", &self.path, fault)
    }

    fn begin(&mut self, head: &[u8]) -> std::io::Result<()> {
        self.spans.clear();
        let mut file = &*self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(head)?;
        self.end = head.len() as u64;
        Ok(())
    }

    /// Reads the tensors of an earlier run; returns `false` if the file belongs to other work. A truncated last tensor
    /// is dropped.
    fn read(&mut self, head: &[u8]) -> std::io::Result<bool> {
        let mut left = self.file.metadata()?.len();
        (&*self.file).rewind()?;
        let mut reader = BufReader::new(&*self.file);
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
            if name_len > MAX_NAME || left < 4 + name_len as u64 + 12 {
                break;
            }
            let mut name = vec![0; name_len];
            reader.read_exact(&mut name)?;
            let (mut len, mut check) = ([0; 8], [0; 4]);
            reader.read_exact(&mut len)?;
            reader.read_exact(&mut check)?;
            let len = u64::from_le_bytes(len);
            left -= 16 + name_len as u64;
            let head_end = self.end + 16 + name_len as u64;
            let start = head_end.next_multiple_of(ALIGNMENT);
            if start - head_end > left || len > left - (start - head_end) {
                break;
            }
            reader.seek_relative((start - head_end) as i64)?;
            left -= start - head_end;
            bytes.resize(len as usize, 0);
            reader.read_exact(&mut bytes)?;
            left -= len;
            let Ok(name) = String::from_utf8(name) else { break };
            if crc32fast::hash(&bytes).to_le_bytes() != check {
                break;
            }
            self.spans.insert(name, (start, len));
            self.end = start + len;
        }
        Ok(true)
    }

    /// Returns a directory for temporary files.
    pub fn directory(&self) -> &Path {
        match &self.scratch {
            Some(scratch) => scratch.path(),
            None => match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            },
        }
    }

    /// Appends a tensor, and returns its bytes in the mapped file.
    ///
    /// # Errors
    /// If it cannot be written or mapped.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<Bytes, Error> {
        let head = [
            &(name.len() as u32).to_le_bytes()[..],
            name.as_bytes(),
            &(bytes.len() as u64).to_le_bytes(),
            &crc32fast::hash(bytes).to_le_bytes(),
        ];
        let mut head = head.concat();
        let start = (self.end + head.len() as u64).next_multiple_of(ALIGNMENT);
        head.resize((start - self.end) as usize, 0);
        let write = || {
            let mut file = &*self.file;
            file.seek(SeekFrom::Start(self.end))?;
            file.write_all(&head)?;
            file.write_all(bytes)
        };
        write().map_err(|fault| self.failed(fault))?;
        self.spans.insert(name.to_owned(), (start, bytes.len() as u64));
        self.end = start + bytes.len() as u64;
        self.mapped(start, bytes.len() as u64)
    }

    /// Maps the bytes of a tensor. They do not change, since this process holds the lock of the file and only appends.
    fn mapped(&self, start: u64, len: u64) -> Result<Bytes, Error> {
        map_part(self.file.clone(), start, len as usize)
            .map_err(|fault| Error::environment("map", &self.path, fault))
    }

    /// Returns the bytes of a tensor in the mapped file.
    ///
    /// # Errors
    /// If they cannot be mapped.
    pub fn get(&self, name: &str) -> Result<Option<Bytes>, Error> {
        self.spans.get(name).map(|(start, len)| self.mapped(*start, *len)).transpose()
    }

    /// Returns the offset of the bytes of a tensor.
    pub fn offset(&self, name: &str) -> Option<u64> {
        self.spans.get(name).map(|(start, _)| *start)
    }

    /// Returns the file as a source. No tensors can be added afterwards.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn source(&self) -> Result<Arc<dyn Source>, Error> {
        // Opening the file for reading locks it, too, and fails if it is still locked. Wine reports an error although
        // it unlocks.
        let _ = self.file.unlock();
        Ok(Arc::new(LocalFile::open(&self.path)?))
    }

    /// Removes the file after the output is complete.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        match self.scratch {
            Some(_) => Ok(()),
            None => std::fs::remove_file(&self.path).map_err(|fault| self.failed(fault)),
        }
    }
}
