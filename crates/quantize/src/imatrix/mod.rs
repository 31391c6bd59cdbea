//! Importance matrices: how much each column of a weight matrix matters to what comes out.
//!
//! While a model reads text, the squares of what enters each matrix product are summed per column.
//! Their mean is the weight of the column's error when the matrix is quantized. llama.cpp's tool
//! stores the sums in two forms, which [`Imatrix::open`] tells apart (`common/imatrix-loader.cpp`
//! of llama.cpp):
//!
//! - a GGUF with two tensors per matrix, `NAME.in_sum2` with the sums and `NAME.counts` with how
//!   many rows were summed, per expert if the matrix has experts;
//! - the legacy `.dat`, sums per chunk of text, which the file does not tell the length of.

mod gguf_form;
mod legacy;
mod statistics;

use std::collections::BTreeMap;
use std::path::Path;

use gguf::{Bytes, Error};
use gguf_store::{AtomicFile, Overwrite};
pub use statistics::{Statistics, statistics};

/// The sums of one matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Sums of squares, one per column, expert after expert.
    pub sums: Vec<f32>,
    /// How many rows were summed (in the legacy form: chunks of rows), one number per expert, or
    /// one for all. Their number divides that of the sums.
    pub counts: Vec<u64>,
}

impl Entry {
    /// Columns: sums per count.
    pub(crate) fn columns(&self) -> usize {
        self.sums.len() / self.counts.len().max(1)
    }
}

/// An importance matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imatrix {
    /// The texts that it was computed on, as they were called.
    pub datasets: Vec<String>,
    /// Chunks of text that it was computed on.
    pub chunk_count: u32,
    /// Tokens of a chunk; `None` in the legacy form, which does not say.
    pub chunk_size: Option<u32>,
    /// By name of the weight matrix, such as `blk.0.attn_q.weight`.
    pub entries: BTreeMap<String, Entry>,
}

impl Imatrix {
    /// Reads a file in either form.
    ///
    /// # Errors
    /// If it cannot be read, is neither, or has sums that are negative or no numbers.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::read(path, source))?;
        let help = "compute the importance matrix again";
        Self::parse(&bytes.into()).map_err(|what| Error::input("imatrix-damaged", path, what, help))
    }

    /// As [`Imatrix::open`], from the bytes of a file.
    fn parse(bytes: &Bytes) -> Result<Self, String> {
        let read =
            if bytes.starts_with(b"GGUF") { gguf_form::read(bytes) } else { legacy::read(bytes) }?;
        for (name, entry) in &read.entries {
            if let Some(i) = entry.sums.iter().position(|sum| !(*sum >= 0.0 && sum.is_finite())) {
                return Err(format!("`{name}`: the sum of column {i} is {}", entry.sums[i]));
            }
        }
        Ok(read)
    }

    /// The importance of a matrix's columns for the encoder, expert after expert; `None` if it has no entry.
    ///
    /// They are means of squares. An expert that was never used has weights of 1, in the legacy
    /// form the sums as they are; all that is as in llama.cpp's quantizer.
    pub fn importance(&self, name: &str) -> Option<Vec<f32>> {
        let entry = self.entries.get(name)?;
        let mut weights = entry.sums.clone();
        let columns = entry.columns().max(1);
        for (weights, &count) in weights.chunks_mut(columns).zip(&entry.counts) {
            match count {
                0 if self.chunk_size.is_some() => weights.fill(1.0),
                0 => {}
                _ => weights.iter_mut().for_each(|sum| *sum /= count as f32),
            }
        }
        Some(weights)
    }

    /// Adds the sums of another importance matrix of the same model, as llama.cpp's tool combines
    /// its `--in-file`s. Sums in the legacy form count as of chunks of `chunk_size` tokens, which
    /// is also the chunk size of the result.
    ///
    /// # Errors
    /// If a matrix has not as many columns or experts in both.
    pub fn merge(&mut self, other: &Self, chunk_size: u32) -> Result<(), Error> {
        // The legacy form has one count for all experts.
        let is_legacy = other.chunk_size.is_none();
        let other = other.in_tokens(chunk_size);
        *self = self.in_tokens(chunk_size);
        for (name, mut theirs) in other.entries {
            let Some(ours) = self.entries.get_mut(&name) else {
                self.entries.insert(name, theirs);
                continue;
            };
            match (&ours.counts[..], &theirs.counts[..]) {
                ([count], [_, _, ..]) => ours.counts = vec![*count; theirs.counts.len()],
                ([_, _, ..], [count]) if is_legacy => {
                    theirs.counts = vec![*count; ours.counts.len()];
                }
                _ => {}
            }
            if (ours.sums.len(), ours.counts.len()) != (theirs.sums.len(), theirs.counts.len()) {
                let what = format!(
                    "`{name}` has {} sums and {} counts (one per expert), in the importance \
                     matrix before {} and {}: they are not of the same model",
                    theirs.sums.len(),
                    theirs.counts.len(),
                    ours.sums.len(),
                    ours.counts.len()
                );
                return Err(Error::request("imatrix-other-model", what, ""));
            }
            ours.sums.iter_mut().zip(theirs.sums).for_each(|(a, b)| *a += b);
            ours.counts.iter_mut().zip(theirs.counts).for_each(|(a, b)| *a = a.saturating_add(b));
        }
        self.datasets.extend(other.datasets);
        *self = self.in_tokens(chunk_size);
        Ok(())
    }

    /// The same sums, per token instead of per chunk if they are in the legacy form, and their
    /// chunks counted anew: those of the matrix that was used most.
    pub fn in_tokens(&self, chunk_size: u32) -> Self {
        let mut all = self.clone();
        if self.chunk_size.is_none() {
            for entry in all.entries.values_mut() {
                entry.sums.iter_mut().for_each(|sum| *sum *= chunk_size as f32);
                for count in &mut entry.counts {
                    *count = count.saturating_mul(chunk_size.into());
                }
            }
        }
        let most = all.entries.values().flat_map(|entry| &entry.counts).max().unwrap_or(&0);
        let chunks = most / u64::from(chunk_size.max(1));
        Self {
            chunk_size: Some(chunk_size),
            chunk_count: chunks.try_into().unwrap_or(u32::MAX),
            ..all
        }
    }

    /// Writes the GGUF form. Sums in the legacy form count as of chunks of 512 tokens, the usual
    /// size; [`Imatrix::in_tokens`] chooses another. The file replaces what `overwrite` lets it.
    ///
    /// # Errors
    /// As [`Overwrite::check`], and if the file cannot be written; what was under the path is then
    /// as it was.
    pub fn write_gguf(&self, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
        let bytes = match self.chunk_size {
            Some(_) => gguf_form::encode(self)?,
            None => gguf_form::encode(&self.in_tokens(512))?,
        };
        write(path, &bytes, overwrite)
    }

    /// Writes the legacy form. Of an expert that was never used it keeps weights of 1, as the
    /// llama.cpp's tool does, and matrices that were never used are left out. The file replaces what
    /// `overwrite` lets it.
    ///
    /// # Errors
    /// As [`Overwrite::check`], if no matrix was ever used, or if the file cannot be written; what was
    /// under the path is then as it was.
    pub fn write_legacy(&self, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
        write(path, &legacy::encode(self)?, overwrite)
    }
}

fn write(path: &Path, bytes: &[u8], overwrite: &Overwrite) -> Result<(), Error> {
    AtomicFile::write(path, bytes, overwrite)
}
