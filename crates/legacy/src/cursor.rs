//! Sequential reader of a legacy file.

use gguf::Error;
use gguf_store::Source;

/// Why a file cannot be parsed.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The content is malformed.
    Malformed {
        /// Offset of the malformed field.
        offset: u64,
        /// Description of the error.
        what: String,
    },
    /// An I/O error.
    Io(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

/// A read position in a file.
pub(super) struct Cursor<'s> {
    source: &'s dyn Source,
    at: u64,
    buffer: Vec<u8>,
    buffer_start: u64,
}

/// Read-ahead size.
const READ_AHEAD: u64 = 1 << 16;

impl<'s> Cursor<'s> {
    /// Starts at offset 0.
    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, at: 0, buffer: Vec::new(), buffer_start: 0 }
    }

    /// Offset of the next byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Number of bytes up to the end of the file.
    pub fn remaining(&self) -> u64 {
        self.source.byte_len() - self.at
    }

    /// An error about the field at `offset`.
    pub fn malformed<T>(offset: u64, what: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::Malformed { offset, what: what.into() })
    }

    /// Reads `n` bytes; fails if fewer remain.
    pub fn bytes(&mut self, n: u64, what: &str) -> Result<&[u8], ReadError> {
        self.check_remaining(n, what)?;
        let buffered = self.buffer_start..self.buffer_start + self.buffer.len() as u64;
        if self.at < buffered.start || self.at + n > buffered.end {
            self.buffer.resize(n.max(READ_AHEAD).min(self.remaining()) as usize, 0);
            self.source.read_at(&mut self.buffer, self.at)?;
            self.buffer_start = self.at;
        }
        let start = (self.at - self.buffer_start) as usize;
        self.at += n;
        Ok(&self.buffer[start..start + n as usize])
    }

    /// Reads a `u32`.
    pub fn u32(&mut self, what: &str) -> Result<u32, ReadError> {
        let bytes = self.bytes(4, what)?;
        Ok(bytes.first_chunk().copied().map_or(0, u32::from_le_bytes))
    }

    /// Reads an `f32`.
    pub fn f32(&mut self, what: &str) -> Result<f32, ReadError> {
        self.u32(what).map(f32::from_bits)
    }

    /// Reads a length-prefixed byte string of at most `max_len` bytes.
    pub fn byte_string(&mut self, max_len: u64, what: &str) -> Result<Vec<u8>, ReadError> {
        let offset = self.at;
        let len = self.u32(what)?.into();
        if len > max_len {
            return Self::malformed(offset, format!("{what} has {len} bytes"));
        }
        Ok(self.bytes(len, what)?.to_vec())
    }

    /// Skips `n` bytes; fails if fewer remain.
    pub fn skip(&mut self, n: u64, what: &str) -> Result<(), ReadError> {
        self.check_remaining(n, what)?;
        self.at += n;
        Ok(())
    }

    fn check_remaining(&self, n: u64, what: &str) -> Result<(), ReadError> {
        if n > self.remaining() {
            let left = self.remaining();
            let what = format!("{what} needs {n} bytes, but only {left} remain");
            return Self::malformed(self.at, what);
        }
        Ok(())
    }
}
