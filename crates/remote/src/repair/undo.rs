//! Bytes that a repair in place replaced, to write them back if the result is wrong.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

/// Replaced bytes, in the order in which they were replaced.
#[derive(Default)]
pub(super) struct Undo {
    spans: Vec<Span>,
    /// Unnamed file with the bytes of all spans that are not zeros.
    stored: Option<File>,
}

struct Span {
    offset: u64,
    len: usize,
    is_zero: bool,
}

impl Undo {
    /// Stores the bytes at `offset` that are about to be replaced. `path` is the file that is repaired.
    pub fn store(&mut self, path: &Path, bytes: &[u8], offset: u64) -> Result<()> {
        let is_zero = bytes.iter().all(|byte| *byte == 0);
        if !is_zero {
            let stored = match &mut self.stored {
                Some(stored) => stored,
                empty => {
                    let real = path.canonicalize()?;
                    let directory = real.parent().unwrap_or(Path::new("."));
                    empty.insert(tempfile::tempfile_in(directory)?)
                }
            };
            stored.write_all(bytes)?;
        }
        self.spans.push(Span { offset, len: bytes.len(), is_zero });
        Ok(())
    }

    /// Writes all stored bytes back.
    pub fn restore(mut self, mut to: &File) -> Result<()> {
        if let Some(stored) = &mut self.stored {
            stored.rewind()?;
        }
        let mut bytes = Vec::new();
        for span in self.spans {
            bytes.clear();
            bytes.resize(span.len, 0);
            if let Some(stored) = self.stored.as_mut().filter(|_| !span.is_zero) {
                stored.read_exact(&mut bytes)?;
            }
            to.seek(SeekFrom::Start(span.offset))?;
            to.write_all(&bytes)?;
        }
        Ok(())
    }
}
