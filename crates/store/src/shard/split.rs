//! One model to several files.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::{Alignment, Error, Header, NameShard, RawHeader, shard_keys, write_header};

use crate::model::{Model, ModelTensor};
use crate::output::{Complete, Overwrite, require_space};
use crate::progress::Progress;
use crate::shard::write::write;

/// How much goes into one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLimit {
    /// At most so many tensors.
    Tensors(NonZeroU64),
    /// At most so many bytes of tensor data, each tensor padded to 32 bytes and the header not
    /// counted; a larger tensor has a shard of its own.
    Bytes(u64),
}

impl SplitLimit {
    /// Runs of tensors with so many bytes of data each, none of the runs empty: one for each shard.
    fn runs(self, lens: impl IntoIterator<Item = u64>) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let (mut start, mut end, mut bytes) = (0, 0, 0u64);
        for len in lens {
            // llama.cpp's tool counts with this alignment whatever the file's is.
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

/// How to split a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitOptions {
    /// How much goes into one shard.
    pub limit: SplitLimit,
    /// The first shard has the keys only: small, so that they can be replaced or looked at
    /// without the data.
    pub no_tensor_first_split: bool,
}

impl SplitOptions {
    /// The tensors of each shard, of tensors with so many bytes of data each, and how many shards
    /// there are: at least one, which may have none.
    ///
    /// # Errors
    /// [`Error::Caller`] if there were more than the 65535 shards that the keys can count.
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
            let what = format!("{} shards are more than 65535: choose a larger limit", runs.len());
            Error::request("shards-too-many", what, "")
        })?;
        Ok((runs, count))
    }
}

impl Default for SplitOptions {
    /// 128 tensors, as llama.cpp's tool.
    fn default() -> Self {
        const {
            Self {
                limit: SplitLimit::Tensors(NonZeroU64::new(128).unwrap()),
                no_tensor_first_split: false,
            }
        }
    }
}

/// Which tensor goes into which shard: nothing is written before [`SplitPlan::write`].
///
/// A model that is in shards already can be split anew.
pub struct SplitPlan<'m> {
    model: &'m Model,
    shards: Vec<PlannedShard<'m>>,
}

/// A shard to be written.
pub struct PlannedShard<'m> {
    /// Its header.
    pub header: Header,
    /// Its tensors, in the order of the header's directory.
    pub tensors: &'m [ModelTensor],
    /// Bytes of the file.
    pub file_len: u64,
}

impl<'m> SplitPlan<'m> {
    /// Plans shards with the bytes that llama.cpp's tool would write.
    ///
    /// Three things are otherwise, each to lose nothing. Where that tool gives up, because the
    /// first tensor alone is over the limit, that tensor has a shard of its own like any other.
    /// Shapes keep final dimensions of 1, which it drops. Data are aligned as the file asks; it
    /// writes 32 whatever `general.alignment` says.
    ///
    /// # Errors
    /// [`Error::Caller`] if there were more than the 65535 shards that the keys can count;
    /// [`Error::File`] if the size of a tensor is not known.
    pub fn new(model: &'m Model, options: SplitOptions) -> Result<Self, Error> {
        // A tensor of unknown size is an error when the header is laid out.
        let lens = model.tensors().iter().map(|tensor| tensor.info.byte_len().unwrap_or(0));
        let (runs, count) = options.runs(lens)?;
        let shards = runs.into_iter().zip(0..count).map(|(run, no)| {
            let tensors = &model.tensors()[run];
            let header = shard_header(model, tensors, no, count)?;
            let file_len = header.file_len(write_header(&header)?.len())?;
            Ok(PlannedShard { header, tensors, file_len })
        });
        let shards = shards.collect::<Result<_, Error>>()?;
        Ok(Self { model, shards })
    }

    /// The shards, in order.
    pub fn shards(&self) -> &[PlannedShard<'m>] {
        &self.shards
    }

    /// Where the shards will be: `PREFIX-00001-of-00003.gguf` and so on.
    pub fn paths(&self, prefix: &Path) -> Vec<PathBuf> {
        let count = self.shards.len() as u32;
        let path = |number| {
            let mut path = OsString::from(prefix);
            path.push(NameShard { number, count }.suffix());
            path.into()
        };
        (1..=count).map(path).collect()
    }

    /// Writes the shards and returns their paths. None appears before all are complete, and the
    /// first one, by which a model is opened, appears last. They replace what `overwrite` lets them,
    /// and no file of the model.
    ///
    /// `progress` is called with the number of bytes just written; `Break` from it ends the work.
    ///
    /// # Errors
    /// As [`Overwrite::check`]; [`Error::Environment`] if something cannot be read or written, or
    /// if the disk has not the room for all.
    pub fn write(
        &self,
        prefix: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<Vec<PathBuf>, Error> {
        let paths = self.paths(prefix);
        let overwrite = self.model.spared(overwrite);
        paths.iter().try_for_each(|path| overwrite.check(path))?;
        let lens = self.shards.iter().map(|shard| shard.file_len);
        let near = paths.iter().map(PathBuf::as_path).zip(lens);
        require_space(near.filter(|(path, _)| !overwrite.is_far(path)))?;
        progress.begin("splitting", self.shards.iter().map(|shard| shard.file_len).sum());
        let mut complete = Vec::with_capacity(paths.len());
        for (shard, path) in self.shards.iter().zip(&paths) {
            // Closed: there may be more shards than a process can have open files.
            complete.push(write(path, &shard.header, shard.tensors, &overwrite, progress)?);
        }
        complete.into_iter().rev().try_for_each(Complete::commit)?;
        Ok(paths)
    }
}

/// All keys in the first shard; the three of a shard last.
fn shard_header(
    model: &Model,
    tensors: &[ModelTensor],
    no: u16,
    count: u16,
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
    draft.lay_out()?;
    Header::new(draft)
}
