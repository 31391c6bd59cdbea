//! Logits files of `llama-perplexity --kl-divergence-base`.
//!
//! ```text
//! "_logits_"  chunk size u32  vocabulary size i32  number of chunks i32
//! ids of all chunks i32 ...
//! per chunk, for each position from the middle to the last but one:
//!     step f32  min f32  levels u16 ...              log-probability = step * level + min
//! ```
//!
//! Numbers are little-endian. An odd number of levels is padded by one. Tokens with a probability below `exp(-16)` times
//! that of the most likely token have level 0.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_runtime::Value;
use gguf_store::{AtomicFile, LocalFile, Overwrite, Source};
use rayon::prelude::*;

use crate::{ChunkOptions, Chunks};

const MAGIC: &[u8; 8] = b"_logits_";
const HEADER: u64 = 20;
/// Range of the log-probabilities.
const RANGE: f32 = 16.0;

/// Layout of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    len: u64,
    vocabulary: u64,
    chunks: u64,
}

impl Layout {
    /// Returns the number of rows of a chunk.
    fn rows(self) -> u64 {
        (self.len - 1).saturating_sub(self.len / 2)
    }

    /// Returns the size of a row in bytes.
    fn row_len(self) -> u64 {
        8 + 4 * self.vocabulary.div_ceil(2)
    }

    /// Returns the offset of a row; `None` on overflow.
    fn row(self, chunk: u64, row: u64) -> Option<u64> {
        let ids = self.len.checked_mul(self.chunks)?.checked_mul(4)?;
        let rows = chunk.checked_mul(self.rows())?.checked_add(row)?;
        rows.checked_mul(self.row_len())?.checked_add(ids)?.checked_add(HEADER)
    }

    fn byte_len(self) -> Option<u64> {
        self.row(self.chunks, 0)
    }
}

/// An open logits file.
pub struct LogitsFile {
    file: LocalFile,
    path: PathBuf,
    layout: Layout,
    ids: Vec<u32>,
}

impl LogitsFile {
    /// Opens a file; of the logits themselves nothing is read yet.
    ///
    /// # Errors
    /// `logits-file-invalid` if it is no such file, is shorter or longer than it says, or has ids that are
    /// not in its vocabulary; if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = LocalFile::open(path)?;
        let mut header = [0; HEADER as usize];
        if file.byte_len() < HEADER {
            return Err(invalid(path, "is shorter than a header"));
        }
        file.read_at(&mut header, 0)?;
        if !header.starts_with(MAGIC) {
            return Err(invalid(path, "does not begin with `_logits_`"));
        }
        let number = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let [len, vocabulary, chunks] =
            [8, 12, 16].map(|at| u64::try_from(number(at)).unwrap_or(0));
        if len < 3 || vocabulary == 0 || chunks == 0 {
            let what = format!(
                "declares {} chunks of {} tokens and {} vocabulary entries",
                number(16),
                number(8),
                number(12)
            );
            return Err(invalid(path, what));
        }
        let layout = Layout { len, vocabulary, chunks };
        if layout.byte_len() != Some(file.byte_len()) {
            let wanted =
                layout.byte_len().map_or("more than any".to_owned(), |len| len.to_string());
            let what = format!(
                "has {} bytes, {wanted} are needed for {chunks} chunks of {len} tokens of {vocabulary}",
                file.byte_len()
            );
            return Err(invalid(path, what));
        }
        // The file is as long as that.
        let mut bytes = vec![0; (4 * len * chunks) as usize];
        file.read_at(&mut bytes, HEADER)?;
        let ids = bytes.chunks_exact(4).map(|id| u32::from_le_bytes([0, 1, 2, 3].map(|i| id[i])));
        let ids: Vec<u32> = ids.collect();
        if let Some(place) = ids.iter().position(|id| u64::from(*id) >= vocabulary) {
            let what = format!("has token {} at place {place}, of {vocabulary}", ids[place] as i32);
            return Err(invalid(path, what));
        }
        Ok(Self { file, path: path.to_owned(), layout, ids })
    }

    /// Returns the vocabulary size.
    pub fn vocabulary_len(&self) -> usize {
        self.layout.vocabulary as usize
    }

    /// Returns the chunks of its text, at most `count`. `first` is the token that the model expects at the start of a text.
    ///
    /// # Errors
    /// As [`Chunks::new`].
    pub fn chunks(&self, first: Option<u32>, count: Option<usize>) -> Result<Chunks, Error> {
        let cut = ChunkOptions { len: self.layout.len as usize, count, stride: None };
        Ok(Chunks::new(self.ids.clone(), first, cut)?.for_logits_file())
    }

    /// Returns bytes that identify the file: its header, its ids, and its first, middle and last row.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sample(&self) -> Result<Vec<u8>, Error> {
        let Layout { chunks, .. } = self.layout;
        let mut bytes = vec![0; HEADER as usize + 4 * self.ids.len()];
        self.file.read_at(&mut bytes, 0)?;
        let rows = chunks * self.layout.rows();
        let mut row = vec![0; self.layout.row_len() as usize];
        for number in [0, rows / 2, rows.saturating_sub(1)] {
            self.file.read_at(&mut row, self.layout.row(0, number).unwrap_or(u64::MAX))?;
            bytes.extend(&row);
        }
        Ok(bytes)
    }

    /// Returns the log-probabilities at positions of a chunk.
    pub(crate) fn read(&self, chunk: usize, places: Range<usize>) -> Result<Value, Error> {
        let row_len = self.layout.row_len() as usize;
        let row = (places.start as u64).saturating_sub(self.layout.len / 2);
        let start = self.layout.row(chunk as u64, row).unwrap_or(u64::MAX);
        let mut bytes = vec![0; places.len() * row_len];
        self.file.read_at(&mut bytes, start)?;
        let width = self.vocabulary_len();
        let mut data = vec![0.0; places.len() * width];
        let rows = data.par_chunks_exact_mut(width).zip(bytes.par_chunks_exact(row_len));
        rows.for_each(|(row, bytes)| decode(bytes, row));
        Ok(Value { rows: places.len(), width, data })
    }

    /// Returns the error for a row that is not finite.
    pub(crate) fn nan_error(&self, chunk: usize, place: usize) -> Error {
        let what = format!("has NaN or infinity in chunk {}, token {place}", chunk + 1);
        invalid(&self.path, what)
    }
}

fn invalid(path: &Path, what: impl Into<Box<str>>) -> Error {
    Error::input("logits-file-invalid", path, what, "write it again with --save-logits")
}

/// Writes a logits file, which gets its name when it is complete.
pub struct LogitsWriter {
    file: AtomicFile,
    layout: Layout,
    /// Number of the first chunk.
    first: usize,
}

impl LogitsWriter {
    /// Creates a file for the logits of chunks.
    ///
    /// # Errors
    /// `logits-file-cut` if the format does not support the chunks; as [`AtomicFile::create`].
    pub fn create(
        path: &Path,
        overwrite: &Overwrite,
        chunks: &Chunks,
        vocabulary: usize,
    ) -> Result<Self, Error> {
        let len = chunks.chunk_len();
        if !chunks.are_adjacent() || len < 3 {
            let what = "a logits file requires adjacent chunks of at least 3 tokens";
            return Err(Error::request("logits-file-cut", what, "omit the stride"));
        }
        let numbers = [len, vocabulary, chunks.count()];
        let layout = Layout {
            len: len as u64,
            vocabulary: vocabulary as u64,
            chunks: chunks.count() as u64,
        };
        let too_large = || {
            let what = "the number of logits exceeds the limit of logits files";
            Error::request("logits-file-cut", what, "use fewer chunks")
        };
        let mut bytes = MAGIC.to_vec();
        for number in numbers {
            let number = i32::try_from(number).map_err(|_| too_large())?;
            bytes.extend(number.to_le_bytes());
        }
        for chunk in chunks.numbers() {
            bytes.extend(chunks.of(chunk).iter().flat_map(|id| id.to_le_bytes()));
        }
        let file = AtomicFile::create(path, overwrite)?;
        // Fails early if the disk is too small.
        file.set_len(layout.byte_len().ok_or_else(too_large)?)?;
        file.write_at(&bytes, 0)?;
        Ok(Self { file, layout, first: chunks.numbers().start })
    }

    /// Writes the logits of a chunk from a position on. Logits of the first half are skipped.
    pub(crate) fn write(&self, chunk: usize, place: usize, logits: &Value) -> Result<(), Error> {
        let middle = (self.layout.len / 2) as usize;
        let (skip, row) = (middle.saturating_sub(place), place.saturating_sub(middle));
        let row_len = self.layout.row_len() as usize;
        let mut bytes = vec![0; logits.rows.saturating_sub(skip) * row_len];
        let rows = bytes.par_chunks_exact_mut(row_len).enumerate();
        rows.for_each(|(row, bytes)| encode(logits.row(skip + row), bytes));
        let start = self.layout.row((chunk - self.first) as u64, row as u64).unwrap_or(u64::MAX);
        self.file.write_at(&bytes, start)
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`].
    pub fn commit(self) -> Result<(), Error> {
        self.file.commit()
    }
}

/// Encodes a row with the same operations as llama.cpp.
fn encode(logits: &[f32], row: &mut [u8]) {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let least = logits.iter().copied().fold(f32::INFINITY, f32::min).max(greatest - RANGE);
    let sum: f64 =
        logits.iter().map(|x| f64::from(libm::exp(f64::from(x - greatest)) as f32)).sum();
    let log_sum = libm::log(sum) as f32;
    let step = (greatest - least) / 65535.0;
    row[..4].copy_from_slice(&step.to_le_bytes());
    row[4..8].copy_from_slice(&(least - greatest - log_sum).to_le_bytes());
    let steps = if step > 0.0 { 1.0 / step } else { 0.0 };
    for (level, logit) in row[8..].chunks_exact_mut(2).zip(logits) {
        let number = if *logit > least { steps * (logit - least) } else { 0.0 };
        level.copy_from_slice(&(number.round_ties_even() as u16).to_le_bytes());
    }
}

fn decode(bytes: &[u8], row: &mut [f32]) {
    let float = |at: usize| f32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
    let (step, least) = (float(0), float(4));
    for (logarithm, level) in row.iter_mut().zip(bytes[8..].chunks_exact(2)) {
        *logarithm = step * f32::from(u16::from_le_bytes([level[0], level[1]])) + least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_match_llama_cpp() {
        // Worked out by hand: the greatest is 2, 16 below it is -14, which -20 is cut to.
        let logits = [2.0, -20.0, 1.0];
        let mut bytes = [0xff; 16];
        encode(&logits, &mut bytes[..14]);
        let step = 16.0 / 65535.0f32;
        assert_eq!(bytes[..4], step.to_le_bytes());
        let log_sum = (1.0 + (-1f64).exp() + (-22f64).exp()).ln();
        let least = f32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        assert!((f64::from(least) + 16.0 + log_sum).abs() < 1e-6);
        assert_eq!(bytes[8..14], [65535u16, 0, 61439].map(u16::to_le_bytes).concat()[..]);
        let mut row = [0.0; 3];
        decode(&bytes, &mut row);
        for (found, wanted) in row.iter().zip([0.0, -16.0, -1.0]) {
            assert!((f64::from(*found) - (wanted - log_sum)).abs() < 1.3e-4);
        }
        // Equal logits have a step of 0.
        encode(&[1.5; 3], &mut bytes[..14]);
        assert_eq!((bytes[..4] == [0; 4], bytes[8..14] == [0; 6]), (true, true));
    }
}
