//! Remote outputs: the interface that object stores implement.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;

use gguf::{Error, Header};

use super::Existing;
use crate::progress::Progress;

/// A destination for remote outputs, such as an object store.
pub trait RemoteStore: Debug + Send + Sync {
    /// Whether `target` is a URL of this store.
    fn accepts(&self, target: &Path) -> bool;

    /// Checks before any work whether `target` may be written.
    ///
    /// # Errors
    /// [`Error::Exists`] if an existing object must not be replaced; [`Error::Caller`] if the URL
    /// does not name a file; [`Error::Environment`] if the store cannot be reached.
    fn check(&self, target: &Path, existing: Existing) -> Result<(), Error>;

    /// Begins an upload.
    ///
    /// # Errors
    /// As [`RemoteStore::check`].
    fn create(
        &self,
        target: &Path,
        existing: Existing,
        layout: OutputLayout,
        resume: &ResumeOptions,
    ) -> Result<Box<dyn RemoteOutput>, Error>;
}

/// An upload in progress. The object does not appear before [`RemoteOutput::commit`]. Dropping it
/// without a commit aborts the upload: the uploaded parts are removed, or kept if a later run is to
/// resume.
pub trait RemoteOutput: Debug + Send + Sync {
    /// Returns the URL of the object.
    fn target(&self) -> &Path;

    /// Takes bytes that belong at `offset`. Threads may call it concurrently; every byte is written
    /// once, except those that [`RemoteOutput::is_uploaded`] reports.
    ///
    /// # Errors
    /// [`Error::Environment`], also for earlier writes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error>;

    /// Whether an earlier run has uploaded all these bytes.
    fn is_uploaded(&self, bytes: Range<u64>) -> bool;

    /// Waits until all bytes are uploaded. `progress` may cancel.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Interrupted`].
    fn close(&mut self, progress: &dyn Progress) -> Result<(), Error>;

    /// Makes the object visible under its name.
    ///
    /// # Errors
    /// [`Error::Exists`] if an object that must not be replaced has appeared meanwhile;
    /// [`Error::Environment`].
    fn commit(self: Box<Self>) -> Result<(), Error>;
}

/// Length of an output and its gaps, known before the first write.
#[derive(Clone, Debug)]
pub struct OutputLayout {
    /// Total length in bytes.
    pub len: u64,
    /// Ranges that are not written and read as zero, in order.
    pub gaps: Vec<Range<u64>>,
}

impl OutputLayout {
    /// Computes the layout of a file with this header, which takes `start` bytes.
    ///
    /// # Errors
    /// If a size overflows.
    pub fn new(header: &Header, start: usize) -> Result<Self, Error> {
        let len = header.file_len(start)?;
        let data_start = start as u64;
        let mut used: Vec<Range<u64>> = header
            .tensors()
            .iter()
            .map(|tensor| {
                let first = data_start.saturating_add(tensor.offset);
                first..first.saturating_add(tensor.byte_len().unwrap_or(0))
            })
            .collect();
        used.sort_unstable_by_key(|range| range.start);
        let (mut gaps, mut end) = (Vec::new(), data_start);
        for range in used.into_iter().chain(std::iter::once(len..len)) {
            if range.start > end {
                gaps.push(end..range.start);
            }
            end = end.max(range.end);
        }
        Ok(Self { len, gaps })
    }
}

/// Whether and how an interrupted write can be resumed.
#[derive(Clone, Copy)]
pub struct ResumeOptions<'u> {
    /// Fingerprint of the job; `None` if it cannot be resumed.
    pub job: Option<u64>,
    /// Resume an earlier run, and keep unfinished work if this run is interrupted.
    pub resume: bool,
    /// Called before the unfinished work of another job is discarded.
    pub on_restart: &'u (dyn Fn() + Sync),
}

impl ResumeOptions<'_> {
    /// Neither resume nor keep unfinished work.
    pub const NEVER: Self = Self { job: None, resume: false, on_restart: &|| {} };
}
