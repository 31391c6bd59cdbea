//! Outputs that are not on this machine: what is asked of those who know such places.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;

use gguf::{Error, Header};

use super::Existing;
use crate::progress::Progress;

/// Places elsewhere that take outputs, such as object stores.
pub trait FarPlace: Debug + Send + Sync {
    /// Whether `target` names something there, and no path on this machine.
    fn has(&self, target: &Path) -> bool;

    /// Says before any work whether `target` may be written.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is something that is not to be replaced; [`Error::Caller`] if the
    /// name is none of a file; [`Error::Environment`] if the place cannot be asked.
    fn check(&self, target: &Path, existing: Existing) -> Result<(), Error>;

    /// Begins an output.
    ///
    /// # Errors
    /// As [`FarPlace::check`].
    fn create(
        &self,
        target: &Path,
        existing: Existing,
        layout: Layout,
        unfinished: &Unfinished,
    ) -> Result<Box<dyn FarOutput>, Error>;
}

/// An output that is being brought elsewhere. Nothing is to be seen under its name before
/// [`FarOutput::commit`]. Dropped without that, it is given up: what was brought so far is removed, or
/// stays if a later run is to go on with it.
pub trait FarOutput: Debug + Send + Sync {
    /// The name that it is to get.
    fn target(&self) -> &Path;

    /// Takes bytes that belong at `offset`. Every byte comes once, from whatever thread, but for
    /// those that are there already.
    ///
    /// # Errors
    /// [`Error::Environment`], also of what was taken earlier.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error>;

    /// Whether an earlier run has brought all these bytes.
    fn has(&self, bytes: Range<u64>) -> bool;

    /// Waits until all bytes are there. `progress` may end the waiting.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Interrupted`].
    fn close(&mut self, progress: &dyn Progress) -> Result<(), Error>;

    /// Gives the output its name.
    ///
    /// # Errors
    /// [`Error::Exists`] if meanwhile something appeared there that is not to be replaced;
    /// [`Error::Environment`].
    fn commit(self: Box<Self>) -> Result<(), Error>;
}

/// Which bytes an output will have, as far as it is known before the first of them.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Bytes in all.
    pub len: u64,
    /// Bytes that nobody writes, and that are zero: in order.
    pub gaps: Vec<Range<u64>>,
}

impl Layout {
    /// Of a file with this header, which takes `start` bytes.
    ///
    /// # Errors
    /// If a size is beyond what can be counted.
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

/// What becomes of an output whose work is interrupted.
#[derive(Clone, Copy)]
pub struct Unfinished<'u> {
    /// Tells this work from all other; `None` if nobody can go on with it.
    pub work: Option<u64>,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    pub resume: bool,
    /// Called if an earlier run left other work, which is thrown away.
    pub anew: &'u (dyn Fn() + Sync),
}

impl Unfinished<'_> {
    /// The next run begins anew.
    pub const LOST: Self = Self { work: None, resume: false, anew: &|| {} };
}
