//! Outputs wherever they go.

use std::ops::Range;
use std::path::Path;

use gguf::Error;

use super::far::{FarOutput, Layout, Unfinished};
use super::{AtomicFile, Complete, Overwrite};
use crate::progress::Progress;

/// A model that is being written, here or elsewhere.
#[derive(Debug)]
pub enum Output {
    /// A file on this machine.
    Near(AtomicFile),
    /// What another place takes.
    Far(Box<dyn FarOutput>),
}

impl Output {
    /// Begins an output. A file here has no length yet, or that of an earlier run.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::resumable`], or of the other place.
    pub fn begin(
        target: &Path,
        layout: Layout,
        unfinished: &Unfinished,
        overwrite: &Overwrite,
    ) -> Result<Self, Error> {
        Ok(if overwrite.is_far(target) {
            Self::Far(overwrite.create_far(target, layout, unfinished)?)
        } else if unfinished.work.is_some() {
            Self::Near(AtomicFile::resumable(target, unfinished.resume, overwrite)?)
        } else {
            Self::Near(AtomicFile::create(target, overwrite)?)
        })
    }

    /// Begins an output of this length, to which the next run cannot come back.
    ///
    /// # Errors
    /// As [`Output::begin`] and [`AtomicFile::set_len`].
    pub fn create(target: &Path, layout: Layout, overwrite: &Overwrite) -> Result<Self, Error> {
        let len = layout.len;
        let output = Self::begin(target, layout, &Unfinished::LOST, overwrite)?;
        if let Self::Near(file) = &output {
            file.set_len(len)?;
        }
        Ok(output)
    }

    /// Whether it is the one that an output of this name would be.
    pub fn is_for(&self, target: &Path) -> bool {
        match self {
            Self::Near(file) => file.is_for(target),
            Self::Far(output) => output.target() == target,
        }
    }

    /// The file, if it is on this machine.
    pub fn near(&self) -> Option<&AtomicFile> {
        match self {
            Self::Near(file) => Some(file),
            Self::Far(_) => None,
        }
    }

    /// Whether these bytes need not be brought elsewhere: they are there, or belong here.
    pub fn is_there(&self, bytes: Range<u64>) -> bool {
        match self {
            Self::Near(_) => true,
            Self::Far(output) => output.has(bytes),
        }
    }

    /// Writes `bytes` at `offset` from the start.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        match self {
            Self::Near(file) => file.write_at(bytes, offset),
            Self::Far(output) => output.write_at(bytes, offset),
        }
    }

    /// Makes sure that all bytes are where they belong; the output has no name yet. `progress` may end
    /// the waiting for other places.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Interrupted`].
    pub fn close(self, progress: &dyn Progress) -> Result<Complete, Error> {
        match self {
            Self::Near(file) => file.close(),
            Self::Far(mut output) => {
                output.close(progress)?;
                Ok(Complete::far(output))
            }
        }
    }
}
