//! Models in several files: `name`, `name.1`, `name.2` and so on.
//!
//! Each part has the whole header and vocabulary, a slice of every matrix, and a copy of every
//! vector. Matrices are split as in the first LLaMA checkpoints, for tensor parallelism:
//! ```text
//! by columns  tok_embeddings, attention.wo, feed_forward.w2
//! by rows     all others
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;

use super::blocks::StorageType;
use super::container::Container;
use super::directory::Record;
use super::file::{LegacyFile, read};
use super::header::{Field, ModelFamily};

/// A tensor joined from all parts of a model.
pub(super) struct JoinedTensor {
    /// Its name in the legacy files.
    pub name: String,
    /// Extents, innermost dimension first.
    pub dims: Vec<u64>,
    /// The stored type.
    pub storage: StorageType,
    /// Its data.
    pub bytes: Arc<dyn Source>,
}

/// Tensors that are split by columns.
const COLUMN_SPLIT: [&str; 3] = ["tok_embeddings.", ".attention.wo.", ".feed_forward.w2."];

/// Twice the largest number of parts of a known model.
const MAX_PARTS: u64 = 16;

/// The tensors of the model whose first file is `first`, and the number of files.
pub(super) fn join(first: &LegacyFile) -> Result<(Vec<JoinedTensor>, u64), Error> {
    let count = count(first)?;
    let others =
        (1..count).map(|number| open_part(first, number, count)).collect::<Result<Vec<_>, _>>()?;
    let joined = |(i, record): (usize, &Record)| join_tensor(first, &others, i, record);
    let tensors = first.records.iter().enumerate().map(joined).collect::<Result<_, _>>()?;
    Ok((tensors, count))
}

/// The number of parts: the embedding length divided by the columns of the embedding in one part.
fn count(first: &LegacyFile) -> Result<u64, Error> {
    let can_have_parts = first.layout.family == ModelFamily::Llama
        && matches!(first.container, Container::Ggml | Container::Ggmf);
    let embedding = first.records.iter().find(|record| record.name == "tok_embeddings.weight");
    let (true, Some(embedding)) = (can_have_parts, embedding) else { return Ok(1) };
    let width = u64::from(first.header.get(Field::Width).unwrap_or(0));
    let columns = embedding.dims[0];
    let count = width / columns;
    if !width.is_multiple_of(columns) || !(1..=MAX_PARTS).contains(&count) {
        let what = format!("the embedding has {columns} columns, but the header states {width}");
        let help = "the file is damaged; download it again";
        return Err(Error::input("legacy-damaged", &first.path, what, help));
    }
    Ok(count)
}

/// The possible paths of the files of a model whose first file is `first`, whether they exist or
/// not.
pub fn part_paths(first: &Path) -> impl Iterator<Item = PathBuf> {
    let others = (1..MAX_PARTS).map(move |number| path_of(first, number));
    std::iter::once(first.to_owned()).chain(others)
}

/// Path of part `number`.
fn path_of(first: &Path, number: u64) -> PathBuf {
    let mut path = first.as_os_str().to_owned();
    path.push(format!(".{number}"));
    path.into()
}

/// Opens another part and checks that it belongs to the same model.
fn open_part(first: &LegacyFile, number: u64, count: u64) -> Result<LegacyFile, Error> {
    let path = path_of(&first.path, number);
    if !path.is_file() {
        let what = format!("is part 1 of {count}, but {} does not exist", path.display());
        let help = "put all parts into one folder and pass the one without a number";
        return Err(Error::input("legacy-part-missing", &first.path, what, help));
    }
    let part = read(&path, Some(first.layout.names[0]))?;
    let is_same = |a: &Record, b: &Record| {
        a.name == b.name && a.dims == b.dims && a.type_id == b.type_id && a.len == b.len
    };
    let matches = part.container == first.container
        && part.header == first.header
        && part.vocabulary == first.vocabulary
        && part.records.len() == first.records.len()
        && part.records.iter().zip(&first.records).all(|(a, b)| is_same(a, b));
    if !matches {
        let what = format!("belongs to a different model than {}", first.path.display());
        let help = "replace it by the part of the same model";
        return Err(Error::input("legacy-part-foreign", &path, what, help));
    }
    Ok(part)
}

fn join_tensor(
    first: &LegacyFile,
    others: &[LegacyFile],
    i: usize,
    record: &Record,
) -> Result<JoinedTensor, Error> {
    let Record { name, dims, storage, .. } = record.clone();
    let first_bytes = first.bytes(record)?;
    if others.is_empty() || dims.len() < 2 {
        return Ok(JoinedTensor { name, dims, storage, bytes: first_bytes });
    }
    let mut parts = vec![first_bytes];
    for other in others {
        parts.push(other.bytes(&other.records[i])?);
    }
    let by_columns = COLUMN_SPLIT.iter().any(|part| name.contains(part));
    let rows: u64 = dims.iter().skip(1).product();
    let chunk = if by_columns { record.len / rows } else { record.len };
    let mut dims = dims;
    dims[usize::from(!by_columns)] *= parts.len() as u64;
    Ok(JoinedTensor { name, dims, storage, bytes: Arc::new(Interleaved { parts, chunk }) })
}

/// Chunks of `chunk` bytes, taken from each part in turn.
struct Interleaved {
    parts: Vec<Arc<dyn Source>>,
    chunk: u64,
}

impl Source for Interleaved {
    fn byte_len(&self) -> u64 {
        self.parts.iter().map(|part| part.byte_len()).sum()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        let count = self.parts.len() as u64;
        while !buffer.is_empty() {
            let (index, within) = (offset / self.chunk, offset % self.chunk);
            let len = (self.chunk - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            let part = &self.parts[(index % count) as usize];
            part.read_at(run, index / count * self.chunk + within)?;
            buffer = rest;
            offset += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_interleaved() {
        let parts: Vec<Arc<dyn Source>> =
            vec![Arc::new(vec![0, 1, 4, 5, 8, 9]), Arc::new(vec![2, 3, 6, 7, 10, 11])];
        let interleaved = Interleaved { parts, chunk: 2 };
        for start in 0..12 {
            let mut out = vec![0; 12 - start];
            interleaved.read_at(&mut out, start as u64).unwrap();
            assert_eq!(out, (start as u8..12).collect::<Vec<_>>());
        }
    }
}
