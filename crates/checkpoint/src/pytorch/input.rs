//! Sequential reading of a range of a source.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use gguf_store::Source;

use super::Fault;

/// Bytes per read.
const WINDOW: u64 = 64 << 10;

/// Maximum length of a line: names and numbers are shorter.
const MAX_LINE: usize = 64 << 10;

/// A reader of a range of a source.
pub(super) struct Input {
    source: Arc<dyn Source>,
    at: u64,
    end: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl Input {
    /// Creates a reader of the bytes from `at` to `end`, or to the end of the source if that comes
    /// first.
    pub fn new(source: Arc<dyn Source>, at: u64, end: u64) -> Self {
        let end = end.min(source.byte_len());
        Self { source, at, end, window: Vec::new(), window_start: 0 }
    }

    /// Returns the position of the next byte.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Reads the next byte.
    pub fn byte(&mut self) -> Result<u8, Fault> {
        let within = self.at.wrapping_sub(self.window_start);
        if self.at >= self.window_start
            && self.at < self.end
            && let Some(byte) = self.window.get(within as usize)
        {
            self.at += 1;
            return Ok(*byte);
        }
        let len = WINDOW.min(self.end.saturating_sub(self.at));
        if len == 0 {
            return Err(self.ended());
        }
        self.window.resize(len as usize, 0);
        self.window_start = self.at;
        self.source.read_at(&mut self.window, self.at)?;
        self.at += 1;
        Ok(self.window[0])
    }

    /// Reads the next `n` bytes; allocates memory only if they exist.
    pub fn take(&mut self, n: u64) -> Result<Vec<u8>, Fault> {
        if n > self.end.saturating_sub(self.at) {
            return Err(self.ended());
        }
        let mut bytes = vec![0; n as usize];
        let within = self.at.wrapping_sub(self.window_start) as usize;
        match self.window.get(within..within.saturating_add(bytes.len())) {
            Some(window) if self.at >= self.window_start => bytes.copy_from_slice(window),
            _ => self.source.read_at(&mut bytes, self.at)?,
        }
        self.at += n;
        Ok(bytes)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Reads up to the end of the line, and skips the line break.
    pub fn line(&mut self) -> Result<Vec<u8>, Fault> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                _ if line.len() >= MAX_LINE => {
                    let what = format!("has an endless line at byte {}", self.at);
                    return Err(Fault::Damaged(what));
                }
                byte => line.push(byte),
            }
        }
    }

    fn ended(&self) -> Fault {
        Fault::Damaged(format!("ends within a pickle, at byte {}", self.end))
    }
}

/// Adapter of a source to the I/O traits of the standard library.
pub(super) struct Cursor {
    source: Arc<dyn Source>,
    at: u64,
}

impl Cursor {
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source, at: 0 }
    }
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.source.byte_len().saturating_sub(self.at);
        let n = left.min(buffer.len() as u64) as usize;
        self.source.read_at(&mut buffer[..n], self.at).map_err(io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.source.byte_len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
