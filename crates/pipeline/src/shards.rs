//! Splitting a job into shards and into parts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::{Error, Metadata, NameShard, shard_keys};

use crate::job::Job;

impl Job {
    /// Splits the job into one job per shard; the first has all metadata. `shard_of` returns the
    /// shard of an item, in `0..count`.
    pub fn in_shards(self, count: u16, shard_of: impl Fn(usize) -> u16) -> Vec<Self> {
        let tensors = self.items.len();
        let mut shards: Vec<Self> = (0..count)
            .map(|no| {
                let mut metadata = if no == 0 { self.metadata.clone() } else { Metadata::new() };
                shard_keys::push(&mut metadata, no, count, tensors);
                let Self { check_finite, order, .. } = self;
                Self { metadata, items: Vec::new(), check_finite, order }
            })
            .collect();
        for (i, item) in self.items.into_iter().enumerate() {
            if let Some(shard) = shards.get_mut(usize::from(shard_of(i))) {
                shard.items.push(item);
            }
        }
        shards
    }

    /// Splits the items into runs of about equal numbers of elements, for distributed work. The
    /// parts depend only on the tensors.
    ///
    /// # Errors
    /// Returns an error if there are fewer tensors than parts.
    pub fn even_parts(&self, count: u16) -> Result<Vec<Range<usize>>, Error> {
        if self.items.len() < usize::from(count) {
            let what = format!("{count} parts for {} tensors", self.items.len());
            let help = "choose at most one part per tensor";
            return Err(Error::request("parts-too-many", what, help));
        }
        let elements = |i: usize| self.items[i].tensor.shape.elements().unwrap_or(0);
        let total: u64 = (0..self.items.len()).map(elements).sum();
        let (mut parts, mut start, mut done) = (Vec::new(), 0, 0u64);
        for part in 1..=u64::from(count) {
            // No part is empty, and at least one item remains for each later part.
            let latest = self.items.len() - (u64::from(count) - part) as usize;
            let goal = (u128::from(total) * u128::from(part) / u128::from(count)) as u64;
            let mut end = start + 1;
            done += elements(start);
            while end < latest && (done + elements(end) / 2 <= goal || part == u64::from(count)) {
                done += elements(end);
                end += 1;
            }
            parts.push(start..end);
            start = end;
        }
        Ok(parts)
    }
}

/// Returns the paths of the shards of the model `path`: `model.gguf` becomes
/// `model-00001-of-00003.gguf` and so on.
pub fn shard_paths(path: &Path, count: u16) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = name.strip_suffix(".gguf").unwrap_or(&name);
    let shard = |number| NameShard { number, count: u32::from(count) }.file_name(prefix);
    (1..=u32::from(count)).map(|number| path.with_file_name(shard(number))).collect()
}
