//! The local copy of a remote file: reading, writing, digest, runs of zeros.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use gguf_store::{AtomicFile, Progress};

use super::digest::RemoteDigest;
use super::undo::Undo;

/// Maximum number of bytes per read and per request.
pub(super) const BLOCK: u64 = 8 << 20;

/// Minimum length of a run of zeros that may be a hole: file systems and download programs leave whole pages.
pub(super) const PAGE: u64 = 4096;

/// A local copy that is compared or repaired.
pub(super) struct Copy<'c> {
    path: &'c Path,
    target: Target<'c>,
    undo: Undo,
}

pub(super) enum Target<'t> {
    /// The damaged file.
    File(&'t File),
    /// A new file.
    Output(&'t AtomicFile),
}

/// Digest and runs of zeros of a copy.
pub(super) struct Scan {
    pub digest: RemoteDigest,
    /// Runs of zero pages, sorted.
    pub zeros: Vec<Range<u64>>,
}

impl<'c> Copy<'c> {
    pub fn new(path: &'c Path, target: Target<'c>) -> Self {
        Self { path, target, undo: Undo::default() }
    }

    pub fn byte_len(&self) -> Result<u64, gguf::Error> {
        match &self.target {
            Target::File(file) => {
                let metadata = file.metadata();
                Ok(metadata.map_err(|fault| gguf::Error::read(self.path, fault))?.len())
            }
            Target::Output(output) => output.byte_len(),
        }
    }

    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let failed = |fault| gguf::Error::read(self.path, fault);
        match &self.target {
            Target::File(file) => {
                let mut file = *file;
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                file.read_exact(buffer).map_err(failed)
            }
            Target::Output(output) => match output.read_at(buffer, offset)? == buffer.len() {
                true => Ok(()),
                false => Err(failed(ErrorKind::UnexpectedEof.into())),
            },
        }
    }

    /// Replaces `old` at `offset` by `new`, of the same length.
    pub fn replace(&mut self, old: &[u8], new: &[u8], offset: u64) -> Result<(), gguf::Error> {
        if matches!(self.target, Target::File(_)) {
            let stored = self.undo.store(self.path, old, offset);
            stored.map_err(|fault| gguf::Error::environment("write", self.path, fault))?;
        }
        self.write(new, offset)
    }

    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<(), gguf::Error> {
        match &self.target {
            Target::File(file) => {
                let mut file = *file;
                file.seek(SeekFrom::Start(offset))
                    .and_then(|_| file.write_all(bytes))
                    .map_err(|fault| gguf::Error::environment("write", self.path, fault))
            }
            Target::Output(output) => output.write_at(bytes, offset),
        }
    }

    pub fn set_len(&self, len: u64) -> Result<(), gguf::Error> {
        match &self.target {
            Target::File(file) => file
                .set_len(len)
                .map_err(|fault| gguf::Error::environment("write", self.path, fault)),
            Target::Output(output) => output.set_len(len),
        }
    }

    /// Writes the replaced bytes of the damaged file back, and restores its length.
    pub fn undo(&mut self, len: u64) -> Result<(), gguf::Error> {
        let Target::File(file) = &self.target else { return Ok(()) };
        let undo = std::mem::take(&mut self.undo);
        undo.restore(file)
            .and_then(|()| file.set_len(len))
            .map_err(|fault| gguf::Error::environment("write", self.path, fault))
    }

    /// Reads a range in blocks.
    fn blocks(
        &self,
        range: Range<u64>,
        progress: &dyn Progress,
        mut each: impl FnMut(&[u8], u64) -> Result<(), gguf::Error>,
    ) -> Result<(), gguf::Error> {
        let mut buffer = Vec::new();
        for block in blocks(range) {
            buffer.resize((block.end - block.start) as usize, 0);
            self.read(&mut buffer, block.start)?;
            each(&buffer, block.start)?;
            progress.step(buffer.len() as u64)?;
        }
        Ok(())
    }

    /// Gives `output` the length `len`, and copies as much of this file.
    pub fn copy_to(
        &self,
        output: &AtomicFile,
        len: u64,
        progress: &dyn Progress,
    ) -> Result<(), gguf::Error> {
        output.set_len(len)?;
        let len = self.byte_len()?.min(len);
        progress.begin("copying", len);
        self.blocks(0..len, progress, |bytes, at| output.write_at(bytes, at))
    }

    /// Computes a digest of the kind of `like` over the first `len` bytes, and finds runs of zeros in them.
    pub fn scan(
        &self,
        like: &RemoteDigest,
        len: u64,
        progress: &dyn Progress,
    ) -> Result<Scan, gguf::Error> {
        progress.begin("hashing", len);
        let (mut hasher, mut zeros) = (like.hasher(len), Vec::<Range<u64>>::new());
        self.blocks(0..len, progress, |bytes, start| {
            hasher.update(bytes);
            for (page, offset) in bytes.chunks(PAGE as usize).zip((start..).step_by(PAGE as usize))
            {
                if page.iter().all(|byte| *byte == 0) {
                    let end = offset + page.len() as u64;
                    match zeros.last_mut() {
                        Some(last) if last.end == offset => last.end = end,
                        _ => zeros.push(offset..end),
                    }
                }
            }
            Ok(())
        })?;
        Ok(Scan { digest: hasher.finish(), zeros })
    }
}

/// Divides a range into blocks.
pub(super) fn blocks(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(BLOCK as usize).map(move |start| start..end.min(start + BLOCK))
}
