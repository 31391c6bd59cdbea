//! Local and remote outputs.

use std::ops::Range;
use std::path::Path;

use gguf::Error;

use super::remote::{OutputLayout, RemoteOutput, ResumeOptions};
use super::{AtomicFile, ClosedOutput, Overwrite};
use crate::progress::Progress;

/// A model that is being written.
#[derive(Debug)]
pub enum Output {
    /// A local file.
    Local(AtomicFile),
    /// An upload to a remote store.
    Remote(Box<dyn RemoteOutput>),
}

impl Output {
    /// Begins an output. A local file has length 0, or the length that an earlier run left.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::resumable`], or errors of the remote store.
    pub fn begin(
        target: &Path,
        layout: OutputLayout,
        resume: &ResumeOptions,
        overwrite: &Overwrite,
    ) -> Result<Self, Error> {
        Ok(if overwrite.is_remote(target) {
            Self::Remote(overwrite.create_remote(target, layout, resume)?)
        } else if resume.job.is_some() {
            Self::Local(AtomicFile::resumable(target, resume.resume, overwrite)?)
        } else {
            Self::Local(AtomicFile::create(target, overwrite)?)
        })
    }

    /// Creates an output of known length that cannot be resumed.
    ///
    /// # Errors
    /// As [`Output::begin`] and [`AtomicFile::set_len`].
    pub fn create(
        target: &Path,
        layout: OutputLayout,
        overwrite: &Overwrite,
    ) -> Result<Self, Error> {
        let len = layout.len;
        let output = Self::begin(target, layout, &ResumeOptions::NEVER, overwrite)?;
        if let Self::Local(file) = &output {
            file.set_len(len)?;
        }
        Ok(output)
    }

    /// Whether an output to `target` would be this output.
    pub fn is_for(&self, target: &Path) -> bool {
        match self {
            Self::Local(file) => file.is_for(target),
            Self::Remote(output) => output.target() == target,
        }
    }

    /// Returns the file of a local output.
    pub fn local(&self) -> Option<&AtomicFile> {
        match self {
            Self::Local(file) => Some(file),
            Self::Remote(_) => None,
        }
    }

    /// Whether these bytes need no upload: the output is local, or an earlier run has uploaded
    /// them.
    pub fn is_uploaded(&self, bytes: Range<u64>) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Remote(output) => output.is_uploaded(bytes),
        }
    }

    /// Writes `bytes` at `offset` from the start.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        match self {
            Self::Local(file) => file.write_at(bytes, offset),
            Self::Remote(output) => output.write_at(bytes, offset),
        }
    }

    /// Flushes or uploads all bytes without making the output visible. `progress` may cancel an
    /// upload.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Interrupted`].
    pub fn close(self, progress: &dyn Progress) -> Result<ClosedOutput, Error> {
        match self {
            Self::Local(file) => file.close(),
            Self::Remote(mut output) => {
                output.close(progress)?;
                Ok(ClosedOutput::remote(output))
            }
        }
    }
}
