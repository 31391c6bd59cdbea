//! Importance matrices: the weight of each column's quantization error.
//!
//! While a model reads text, the squares of the inputs of each matrix are summed per column. The
//! mean is the weight of the column's squared error when the matrix is quantized. llama.cpp's tool
//! stores the sums in two formats, which [`Imatrix::open`] detects (`common/imatrix-loader.cpp` of
//! llama.cpp):
//!
//! - a GGUF with two tensors per matrix: `NAME.in_sum2` with the sums, and `NAME.counts` with the
//!   number of summed rows, per expert if the matrix has experts;
//! - the legacy `.dat` with sums per chunk of text, without the chunk size.

mod gguf_format;
mod legacy_format;
mod statistics;

use std::collections::BTreeMap;
use std::path::Path;

use gguf::{Bytes, Error};
use gguf_store::{AtomicFile, Overwrite};
pub use statistics::{Statistics, statistics};

/// Statistics of one matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Sums of squares, one per column, expert by expert.
    pub sums: Vec<f32>,
    /// Number of summed rows (in the legacy format: chunks), one number per expert or one for all.
    /// The number of counts divides the number of sums.
    pub counts: Vec<u64>,
}

impl Entry {
    /// Number of columns: sums per count.
    pub(crate) fn columns(&self) -> usize {
        self.sums.len() / self.counts.len().max(1)
    }
}

/// An importance matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imatrix {
    /// Names of the calibration texts.
    pub datasets: Vec<String>,
    /// Number of chunks of calibration text.
    pub chunk_count: u32,
    /// Number of tokens per chunk; `None` in the legacy format, which does not store it.
    pub chunk_size: Option<u32>,
    /// Digest of the model, the text and the settings with which one run collected it. llama.cpp's tool writes none.
    pub fingerprint: Option<String>,
    /// Entries by the name of the weight matrix, such as `blk.0.attn_q.weight`.
    pub entries: BTreeMap<String, Entry>,
}

impl Imatrix {
    /// Reads a file in either format.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, has neither format, or contains sums that are
    /// negative or not finite.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::read(path, source))?;
        let help = "compute the importance matrix again";
        Self::parse(&bytes.into()).map_err(|what| Error::input("imatrix-damaged", path, what, help))
    }

    /// Parses the bytes of a file in either format.
    fn parse(bytes: &Bytes) -> Result<Self, String> {
        let read = if bytes.starts_with(b"GGUF") {
            gguf_format::read(bytes)
        } else {
            legacy_format::read(bytes)
        }?;
        for (name, entry) in &read.entries {
            if let Some(i) = entry.sums.iter().position(|sum| !(*sum >= 0.0 && sum.is_finite())) {
                return Err(format!("`{name}`: the sum of column {i} is {}", entry.sums[i]));
            }
        }
        Ok(read)
    }

    /// Returns the importance weights of a matrix, expert by expert; `None` without an entry.
    ///
    /// The weights are means of squares. As in llama.cpp's quantizer, an expert without tokens gets
    /// weights of 1, and in the legacy format the sums themselves.
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
    /// its `--in-file`s. Legacy sums count as chunks of `chunk_size` tokens, which is also the
    /// chunk size of the result.
    ///
    /// # Errors
    /// Returns an error if the number of columns or experts of a matrix differs.
    pub fn merge(&mut self, other: &Self, chunk_size: u32) -> Result<(), Error> {
        // The legacy format has one count for all experts.
        let is_legacy = other.chunk_size.is_none();
        let other = other.to_token_sums(chunk_size);
        *self = self.to_token_sums(chunk_size);
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
        if self.fingerprint != other.fingerprint {
            self.fingerprint = None;
        }
        *self = self.to_token_sums(chunk_size);
        Ok(())
    }

    /// Converts legacy sums per chunk to sums per token, and recomputes the number of chunks from
    /// the most-used matrix.
    pub fn to_token_sums(&self, chunk_size: u32) -> Self {
        let mut all = self.clone();
        if self.chunk_size.is_none() {
            for entry in all.entries.values_mut() {
                entry.sums.iter_mut().for_each(|sum| *sum *= chunk_size as f32);
                for count in &mut entry.counts {
                    *count = count.saturating_mul(chunk_size.into());
                }
            }
        }
        let max = all.entries.values().flat_map(|entry| &entry.counts).max().unwrap_or(&0);
        let chunks = max / u64::from(chunk_size.max(1));
        Self {
            chunk_size: Some(chunk_size),
            chunk_count: chunks.try_into().unwrap_or(u32::MAX),
            ..all
        }
    }

    /// Writes the GGUF format. Legacy sums count as chunks of 512 tokens, the usual size;
    /// [`Imatrix::to_token_sums`] selects another. Replaces an existing file if `overwrite` permits.
    ///
    /// # Errors
    /// Returns the errors of [`Overwrite::check`], or an error if the file cannot be written; an
    /// existing file is then unchanged.
    pub fn write_gguf(&self, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
        let bytes = match self.chunk_size {
            Some(_) => gguf_format::encode(self)?,
            None => gguf_format::encode(&self.to_token_sums(512))?,
        };
        write(path, &bytes, overwrite)
    }

    /// Writes the legacy format. As in llama.cpp's tool, an expert without tokens gets weights of
    /// 1, and matrices without tokens are skipped. Replaces an existing file if `overwrite`
    /// permits.
    ///
    /// # Errors
    /// Returns the errors of [`Overwrite::check`], or an error if no matrix was used or the file
    /// cannot be written; an existing file is then unchanged.
    pub fn write_legacy(&self, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
        write(path, &legacy_format::encode(self)?, overwrite)
    }
}

fn write(path: &Path, bytes: &[u8], overwrite: &Overwrite) -> Result<(), Error> {
    AtomicFile::write(path, bytes, overwrite)
}
