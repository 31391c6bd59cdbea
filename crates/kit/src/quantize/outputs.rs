//! Outputs of a quantization and their files.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gguf::shard_keys::PART_FINGERPRINT;
use gguf_pipeline::{Item, Job, shard_paths};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::Target;
use gguf_store::{Model, SplitOptions};

use crate::Error;

/// An output of a quantization.
#[derive(Clone, Debug)]
pub struct QuantizeOutput {
    /// Target types or size.
    pub goal: Goal,
    /// Path of the file, or the base of the names of its shards.
    pub path: PathBuf,
}

/// Goal of a quantization.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// A quantization type.
    Target(Target),
    /// The lowest loss within a size.
    Budget(Budget),
}

/// Sharding of an output.
#[derive(Clone, Copy, Debug, Default)]
pub enum Split {
    /// One file.
    #[default]
    None,
    /// The shards of the model.
    AsModel,
    /// Shards of limited size.
    Within(SplitOptions),
    /// One of several even parts, for distributed work.
    Part(Part),
}

/// One of several even parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1 to `count`.
    number: u16,
    count: u16,
}

impl Part {
    /// The only part.
    pub const WHOLE: Self = Self { number: 1, count: 1 };

    /// Returns the number of parts.
    pub(crate) fn count(self) -> u16 {
        self.count
    }

    /// Returns the range of this part among `pieces` pieces of work.
    pub fn share(self, pieces: usize) -> Range<usize> {
        let before =
            |number: u16| (pieces as u128 * u128::from(number) / u128::from(self.count)) as usize;
        before(self.number - 1)..before(self.number)
    }
}

/// An invalid part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected I/N with I from 1 to N, such as 2/4")]
pub struct InvalidPart;

impl FromStr for Part {
    type Err = InvalidPart;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            Some(Self { number: number.parse().ok()?, count: count.parse().ok()? })
        });
        parsed.filter(|part| (1..=part.count).contains(&part.number)).ok_or(InvalidPart)
    }
}

impl Split {
    /// Returns the files of one output.
    pub(super) fn files(
        self,
        job: Job,
        path: &Path,
        model: &Model,
    ) -> Result<Vec<(Job, PathBuf)>, Error> {
        Ok(match self {
            Self::None => vec![(job, path.to_owned())],
            Self::AsModel => as_model(job, path, model),
            Self::Within(options) => within(job, path, options)?,
            Self::Part(part) => vec![one_part(job, path, part)?],
        })
    }
}

/// Returns one of several even parts, with the fingerprint that all parts share.
pub(crate) fn one_part(job: Job, path: &Path, part: Part) -> Result<(Job, PathBuf), Error> {
    let ranges = job.even_parts(part.count)?;
    let fingerprint = job.fingerprint()?;
    let shard_of = |i| ranges.iter().position(|range| range.contains(&i)).unwrap_or(0) as u16;
    let mut shard = job.in_shards(part.count, shard_of).swap_remove(usize::from(part.number) - 1);
    shard.metadata.push(PART_FINGERPRINT, fingerprint);
    let path = shard_paths(path, part.count).swap_remove(usize::from(part.number) - 1);
    Ok((shard, path))
}

/// Divides a job into the shards of the model.
fn as_model(job: Job, path: &Path, model: &Model) -> Vec<(Job, PathBuf)> {
    let Ok(count @ 2..) = u16::try_from(model.parts().len()) else {
        return vec![(job, path.to_owned())];
    };
    let shards: Vec<u16> = job
        .items
        .iter()
        .map(|item| {
            let mut tensors = model.tensors().iter();
            let stored = tensors.find(|tensor| item.tensor.is_stored_in(&*tensor.source));
            stored.map_or(0, |tensor| tensor.shard) as u16
        })
        .collect();
    let jobs = job.in_shards(count, |i| shards[i]);
    jobs.into_iter().zip(shard_paths(path, count)).collect()
}

/// Divides a job into shards of limited size. A single shard keeps the file name, as in llama.cpp's converter.
pub(crate) fn within(
    job: Job,
    path: &Path,
    options: SplitOptions,
) -> Result<Vec<(Job, PathBuf)>, Error> {
    let len = |item: &Item| item.target.byte_len(&item.tensor.shape).unwrap_or(0);
    let (runs, count) = options.runs(job.items.iter().map(len))?;
    if count == 1 {
        return Ok(vec![(job, path.to_owned())]);
    }
    let numbered = runs.into_iter().zip(0..count);
    let shards: Vec<u16> = numbered.flat_map(|(run, number)| run.map(move |_| number)).collect();
    let jobs = job.in_shards(count, |i| shards[i]);
    Ok(jobs.into_iter().zip(shard_paths(path, count)).collect())
}
