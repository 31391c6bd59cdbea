//! Splits a model into shards.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::{Alignment, Error, Header, NameShard, RawHeader, shard_keys, write_header};

use crate::model::{Model, ModelTensor};
use crate::output::{ClosedOutput, Overwrite, require_space};
use crate::progress::Progress;
use crate::shard::write::write;

/// Maximum size of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLimit {
    /// Maximum number of tensors.
    Tensors(NonZeroU64),
    /// Maximum number of bytes of tensor data, with each tensor padded to 32 bytes and without the
    /// header; a larger tensor gets a shard of its own.
    Bytes(u64),
}

impl SplitLimit {
    /// Groups tensors with these data lengths into non-empty runs, one per shard.
    fn runs(self, lens: impl IntoIterator<Item = u64>) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let (mut start, mut end, mut bytes) = (0, 0, 0u64);
        for len in lens {
            // llama.cpp's tool uses this alignment regardless of the file's.
            let len = Alignment::default().align_up(len).unwrap_or(u64::MAX);
            bytes = bytes.saturating_add(len);
            let full = match self {
                Self::Tensors(n) => (end - start) as u64 == n.get(),
                Self::Bytes(max) => bytes > max,
            };
            if full && end > start {
                runs.push(start..end);
                (start, bytes) = (end, len);
            }
            end += 1;
        }
        if start < end {
            runs.push(start..end);
        }
        runs
    }
}

/// Options of [`SplitPlan::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitOptions {
    /// Maximum size of a shard.
    pub limit: SplitLimit,
    /// Leave the first shard without tensors, so that its keys can be replaced or read without the
    /// data.
    pub no_tensor_first_split: bool,
}

impl SplitOptions {
    /// Groups tensors with these data lengths into shards, and returns the runs and the number of
    /// shards: at least one shard, which may be empty.
    ///
    /// # Errors
    /// [`Error::Caller`] if there are more than 65535 shards, the maximum of the key.
    pub fn runs(
        self,
        lens: impl IntoIterator<Item = u64>,
    ) -> Result<(Vec<Range<usize>>, u16), Error> {
        let mut runs = self.limit.runs(lens);
        if runs.is_empty() {
            runs.push(0..0);
        }
        if self.no_tensor_first_split {
            runs.insert(0, 0..0);
        }
        let count = u16::try_from(runs.len()).map_err(|_| {
            let what =
                format!("{} shards exceed the maximum of 65535: choose a larger limit", runs.len());
            Error::request("shards-too-many", what, "")
        })?;
        Ok((runs, count))
    }
}

impl Default for SplitOptions {
    /// At most 128 tensors per shard, as llama.cpp's tool.
    fn default() -> Self {
        const {
            Self {
                limit: SplitLimit::Tensors(NonZeroU64::new(128).unwrap()),
                no_tensor_first_split: false,
            }
        }
    }
}

/// Assignment of tensors to shards. Nothing is written before [`SplitPlan::write`].
///
/// A sharded model can be split again.
pub struct SplitPlan<'m> {
    model: &'m Model,
    shards: Vec<PlannedShard<'m>>,
}

/// A shard to write.
pub struct PlannedShard<'m> {
    /// Header of the shard.
    pub header: Header,
    /// Tensors of the shard, in directory order.
    pub tensors: &'m [ModelTensor],
    /// Length of the file in bytes.
    pub file_len: u64,
}

impl<'m> SplitPlan<'m> {
    /// Plans shards with the bytes that llama.cpp's tool writes, with three exceptions that avoid
    /// data loss or failure:
    ///
    /// - If the first tensor alone exceeds the limit, it gets a shard of its own; that tool fails.
    /// - Shapes keep trailing dimensions of 1; that tool drops them.
    /// - Data have the alignment of the file; that tool ignores `general.alignment` and uses 32.
    ///
    /// # Errors
    /// [`Error::Caller`] if there are more than 65535 shards, the maximum of the key;
    /// [`Error::File`] if the size of a tensor is unknown.
    pub fn new(model: &'m Model, options: SplitOptions) -> Result<Self, Error> {
        Self::planned(model, options, None)
    }

    /// Plans shards as [`SplitPlan::new`], each with a fingerprint of the model, which tells shards of models with equal
    /// shapes apart when they are merged.
    ///
    /// # Errors
    /// As [`SplitPlan::new`].
    pub fn identified(
        model: &'m Model,
        options: SplitOptions,
        fingerprint: &str,
    ) -> Result<Self, Error> {
        Self::planned(model, options, Some(fingerprint))
    }

    fn planned(
        model: &'m Model,
        options: SplitOptions,
        fingerprint: Option<&str>,
    ) -> Result<Self, Error> {
        // A tensor of unknown size fails when the header is laid out.
        let lens = model.tensors().iter().map(|tensor| tensor.info.byte_len().unwrap_or(0));
        let (runs, count) = options.runs(lens)?;
        let shards = runs.into_iter().zip(0..count).map(|(run, no)| {
            let tensors = &model.tensors()[run];
            let header = shard_header(model, tensors, no, count, fingerprint)?;
            let file_len = header.file_len(write_header(&header)?.len())?;
            Ok(PlannedShard { header, tensors, file_len })
        });
        let shards = shards.collect::<Result<_, Error>>()?;
        Ok(Self { model, shards })
    }

    /// Returns the shards in order.
    pub fn shards(&self) -> &[PlannedShard<'m>] {
        &self.shards
    }

    /// Returns the paths of the shards: `PREFIX-00001-of-00003.gguf` and so on.
    pub fn paths(&self, prefix: &Path) -> Vec<PathBuf> {
        let count = self.shards.len() as u32;
        let path = |number| {
            let mut path = OsString::from(prefix);
            path.push(NameShard { number, count }.suffix());
            path.into()
        };
        (1..=count).map(path).collect()
    }

    /// Writes the shards and returns their paths. No shard appears before all are complete, and the
    /// first one, by which a model is opened, appears last. They replace what `overwrite` allows,
    /// and never a file of the model.
    ///
    /// `progress` receives the number of bytes of each write; `Break` cancels.
    ///
    /// # Errors
    /// As [`Overwrite::check`]; [`Error::Environment`] if a file cannot be read or written, or if
    /// the disk has not enough space for all shards.
    pub fn write(
        &self,
        prefix: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<Vec<PathBuf>, Error> {
        let paths = self.paths(prefix);
        let overwrite = self.model.protecting_inputs(overwrite);
        paths.iter().try_for_each(|path| overwrite.check(path))?;
        let lens = self.shards.iter().map(|shard| shard.file_len);
        let local = paths.iter().map(PathBuf::as_path).zip(lens);
        require_space(local.filter(|(path, _)| !overwrite.is_remote(path)))?;
        progress.begin("splitting", self.shards.iter().map(|shard| shard.file_len).sum());
        let mut complete = Vec::with_capacity(paths.len());
        for (shard, path) in self.shards.iter().zip(&paths) {
            // Close each file: a process may not be able to keep all of them open.
            complete.push(write(path, &shard.header, shard.tensors, &overwrite, progress)?);
        }
        complete.into_iter().rev().try_for_each(ClosedOutput::commit)?;
        Ok(paths)
    }
}

/// Returns the header of a shard: all keys in the first shard, the three `split.` keys last.
fn shard_header(
    model: &Model,
    tensors: &[ModelTensor],
    no: u16,
    count: u16,
    fingerprint: Option<&str>,
) -> Result<Header, Error> {
    let mut draft = RawHeader {
        order: model.order(),
        tensors: tensors.iter().map(|tensor| tensor.info.clone()).collect(),
        ..RawHeader::default()
    };
    if no == 0 {
        draft.metadata = model.metadata().clone();
    }
    shard_keys::push(&mut draft.metadata, no, count, model.tensors().len());
    if let Some(fingerprint) = fingerprint {
        draft.metadata.push(shard_keys::PART_FINGERPRINT, fingerprint);
    }
    draft.lay_out()?;
    Header::new(draft)
}
