//! Reading an old file from its start, field by field.

use gguf::Error;
use gguf_store::Source;

/// Why a file cannot be read in some way.
#[derive(Debug)]
pub(super) enum Fault {
    /// The file is at fault.
    At {
        /// First byte of the field at fault.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// It cannot be read at all.
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A place in a file.
pub(super) struct Cursor<'s> {
    source: &'s dyn Source,
    at: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// Bytes that are read ahead.
const WINDOW: u64 = 1 << 16;

impl<'s> Cursor<'s> {
    /// The start of a file.
    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, at: 0, window: Vec::new(), window_start: 0 }
    }

    /// Bytes from the start of the file.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Bytes up to the end of the file.
    pub fn remaining(&self) -> u64 {
        self.source.byte_len() - self.at
    }

    /// A fault of the field that begins at `offset`.
    pub fn fault<T>(offset: u64, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::At { offset, what: what.into() })
    }

    /// The next `n` bytes, of which the file must have as many.
    pub fn bytes(&mut self, n: u64, what: &str) -> Result<&[u8], Fault> {
        self.check(n, what)?;
        let held = self.window_start..self.window_start + self.window.len() as u64;
        if self.at < held.start || self.at + n > held.end {
            self.window.resize(n.max(WINDOW).min(self.remaining()) as usize, 0);
            self.source.read_at(&mut self.window, self.at)?;
            self.window_start = self.at;
        }
        let start = (self.at - self.window_start) as usize;
        self.at += n;
        Ok(&self.window[start..start + n as usize])
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, what: &str) -> Result<u32, Fault> {
        let bytes = self.bytes(4, what)?;
        Ok(bytes.first_chunk().copied().map_or(0, u32::from_le_bytes))
    }

    /// A number of single precision.
    pub fn f32(&mut self, what: &str) -> Result<f32, Fault> {
        self.u32(what).map(f32::from_bits)
    }

    /// A text with its length before it, of at most `longest` bytes.
    pub fn text(&mut self, longest: u64, what: &str) -> Result<Vec<u8>, Fault> {
        let offset = self.at;
        let len = self.u32(what)?.into();
        if len > longest {
            return Self::fault(offset, format!("{what} of {len} bytes"));
        }
        Ok(self.bytes(len, what)?.to_vec())
    }

    /// Passes over `n` bytes, of which the file must have as many.
    pub fn skip(&mut self, n: u64, what: &str) -> Result<(), Fault> {
        self.check(n, what)?;
        self.at += n;
        Ok(())
    }

    fn check(&self, n: u64, what: &str) -> Result<(), Fault> {
        if n > self.remaining() {
            let left = self.remaining();
            let what = format!("{what}: {n} bytes, of which the file has {left}");
            return Self::fault(self.at, what);
        }
        Ok(())
    }
}
