//! Importance matrices: how much each column of a weight matrix matters to what comes out.
//!
//! While a model reads text, the squares of what enters each matrix product are summed per column.
//! Their mean is the weight of the column's error when the matrix is quantized. The official tool
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
use std::path::{Path, PathBuf};

use gguf::Output;

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
    pub fn columns(&self) -> usize {
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

/// An importance matrix that cannot be read, written or merged.
#[derive(Debug, thiserror::Error)]
pub enum ImatrixError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is at fault.
    #[error("{path}: {what}; compute the importance matrix again", path = .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// Two importance matrices are not of the same model.
    #[error(
        "`{name}` has {found} columns in one importance matrix and {expected} in another: they are \
         not of the same model"
    )]
    Different {
        /// The weight matrix.
        name: String,
        /// Sums in the first.
        expected: usize,
        /// Sums in the second.
        found: usize,
    },
    /// The container refused.
    #[error(transparent)]
    Container(#[from] gguf::Error),
}

impl Imatrix {
    /// Reads a file in either form.
    ///
    /// # Errors
    /// If it cannot be read, is neither, or has sums that are negative or no numbers.
    pub fn open(path: &Path) -> Result<Self, ImatrixError> {
        let bytes = std::fs::read(path)
            .map_err(|source| ImatrixError::Read { path: path.to_owned(), source })?;
        Self::parse(&bytes).map_err(|what| ImatrixError::Broken { path: path.to_owned(), what })
    }

    /// As [`Imatrix::open`], from the bytes of a file.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let read =
            if bytes.starts_with(b"GGUF") { gguf_form::read(bytes) } else { legacy::read(bytes) }?;
        for (name, entry) in &read.entries {
            if let Some(i) = entry.sums.iter().position(|sum| !(*sum >= 0.0 && sum.is_finite())) {
                return Err(format!("`{name}`: the sum of column {i} is {}", entry.sums[i]));
            }
        }
        Ok(read)
    }

    /// The weights of a matrix for the encoder, expert after expert; `None` if it has no entry.
    ///
    /// They are means of squares. An expert that was never used has weights of 1, in the legacy
    /// form the sums as they are; all that is as in the official quantizer.
    pub fn weights(&self, name: &str) -> Option<Vec<f32>> {
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

    /// Adds the sums of another importance matrix of the same model, as the official tool combines
    /// its `--in-file`s. Sums in the legacy form count as of chunks of `chunk_size` tokens, which
    /// is also the chunk size of the result.
    ///
    /// # Errors
    /// If a matrix has not as many columns or experts in both.
    pub fn merge(&mut self, other: &Self, chunk_size: u32) -> Result<(), ImatrixError> {
        let other = other.in_tokens(chunk_size);
        *self = self.in_tokens(chunk_size);
        for (name, theirs) in other.entries {
            let Some(ours) = self.entries.get_mut(&name) else {
                self.entries.insert(name, theirs);
                continue;
            };
            if let ([count], 2..) = (&ours.counts[..], theirs.counts.len()) {
                // One count for all experts, as the legacy form has it.
                ours.counts = vec![*count; theirs.counts.len()];
            }
            if (ours.sums.len(), ours.counts.len()) != (theirs.sums.len(), theirs.counts.len()) {
                let (expected, found) = (ours.columns(), theirs.columns());
                return Err(ImatrixError::Different { name, expected, found });
            }
            ours.sums.iter_mut().zip(theirs.sums).for_each(|(a, b)| *a += b);
            ours.counts.iter_mut().zip(theirs.counts).for_each(|(a, b)| *a = a.saturating_add(b));
        }
        self.datasets.extend(other.datasets);
        let most = self.entries.values().flat_map(|entry| &entry.counts).max().unwrap_or(&0);
        self.chunk_count = (most / u64::from(chunk_size.max(1))).try_into().unwrap_or(u32::MAX);
        Ok(())
    }

    /// The same sums, per token instead of per chunk if they are in the legacy form.
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
        Self { chunk_size: Some(chunk_size), ..all }
    }

    /// Writes the GGUF form. Sums in the legacy form count as of chunks of 512 tokens, the usual
    /// size; [`Imatrix::in_tokens`] chooses another.
    ///
    /// # Errors
    /// If the file cannot be written; what was under the path is then as it was.
    pub fn write_gguf(&self, path: &Path) -> Result<(), ImatrixError> {
        let bytes = gguf_form::encode(&self.in_tokens(self.chunk_size.unwrap_or(512)))?;
        write(path, &bytes)
    }

    /// Writes the legacy form. Of an expert that was never used it keeps weights of 1, as the
    /// official tool does, and matrices that were never used are left out.
    ///
    /// # Errors
    /// If the file cannot be written; what was under the path is then as it was.
    pub fn write_legacy(&self, path: &Path) -> Result<(), ImatrixError> {
        write(path, &legacy::encode(self))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ImatrixError> {
    let output = Output::create(path)?;
    output.write_at(bytes, 0)?;
    output.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Imatrix {
        let entry =
            |sums: &[f32], counts: &[u64]| Entry { sums: sums.into(), counts: counts.into() };
        Imatrix {
            datasets: vec!["a.txt".into()],
            chunk_count: 2,
            chunk_size: Some(4),
            entries: BTreeMap::from([
                ("blk.0.ffn_up.weight".into(), entry(&[8.0, 4.0, 0.0], &[8])),
                ("blk.0.ffn_up_exps.weight".into(), entry(&[2.0, 4.0, 9.0, 9.0], &[4, 0])),
            ]),
        }
    }

    #[test]
    fn both_forms_read_back_what_they_wrote() {
        let all = small();
        assert_eq!(Imatrix::parse(&gguf_form::encode(&all).unwrap()).unwrap(), all);
        let legacy = Imatrix::parse(&legacy::encode(&all)).unwrap();
        assert_eq!(legacy.chunk_size, None);
        let up = "blk.0.ffn_up.weight";
        assert_eq!(legacy.entries[up], Entry { sums: vec![2.0, 1.0, 0.0], counts: vec![2] });
        assert_eq!(
            (legacy.weights(up), all.weights(up)),
            (Some(vec![1.0, 0.5, 0.0]), Some(vec![1.0, 0.5, 0.0]))
        );
        assert_eq!(legacy.in_tokens(4).entries[up], all.entries[up]);
    }

    #[test]
    fn experts_that_were_never_used_count_alike() {
        let weights = small().weights("blk.0.ffn_up_exps.weight");
        assert_eq!(weights, Some(vec![0.5, 1.0, 1.0, 1.0]));
        assert_eq!(small().weights("output.weight"), None);
    }

    #[test]
    fn merging_adds() {
        let mut twice = small();
        twice.merge(&small(), 4).unwrap();
        let up = &twice.entries["blk.0.ffn_up.weight"];
        assert_eq!((&up.sums[..], &up.counts[..]), (&[16.0, 8.0, 0.0][..], &[16][..]));
        assert_eq!((twice.chunk_count, twice.datasets.len()), (4, 2));
        let mut other = small();
        other.entries.get_mut("blk.0.ffn_up.weight").unwrap().sums.push(1.0);
        assert!(matches!(twice.merge(&other, 4), Err(ImatrixError::Different { .. })));
    }

    #[test]
    fn broken_files_are_refused() {
        let (gguf, legacy) = (gguf_form::encode(&small()).unwrap(), legacy::encode(&small()));
        for whole in [&gguf, &legacy] {
            for len in 0..whole.len() {
                // The dataset at the end of the legacy form, and the padding of the other, may lack.
                let _ = Imatrix::parse(&whole[..len]);
            }
        }
        for len in [0, 3, 4, 20, legacy.len() / 2] {
            assert!(Imatrix::parse(&legacy[..len]).is_err(), "{len}");
        }
        let forged = [&1u32.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &[0; 16]].concat();
        assert!(Imatrix::parse(&forged).is_err());
        for wrong in [f32::NAN, -1.0, f32::INFINITY] {
            let mut broken = small();
            broken.entries.get_mut("blk.0.ffn_up.weight").unwrap().sums[1] = wrong;
            let fault = Imatrix::parse(&gguf_form::encode(&broken).unwrap()).unwrap_err();
            assert!(fault.contains("column 1"), "{fault}");
        }
    }
}
