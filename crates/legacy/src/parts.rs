//! Models of 2023 in several files: `name`, `name.1`, `name.2` and so on.
//!
//! Each part has the whole header and vocabulary, a slice of every matrix, and a copy of every
//! vector. Matrices are cut up as the first LLaMA checkpoints were, among as many machines:
//!
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
use super::header::{Field, Program};
use super::read::{OldFile, read};

/// A tensor of a model, from however many files.
pub(super) struct JoinedTensor {
    /// Its name in the old files.
    pub name: String,
    /// Elements per dimension, fastest first.
    pub dims: Vec<u64>,
    /// How its blocks are stored.
    pub form: StorageType,
    /// Its bytes and nothing else.
    pub bytes: Arc<dyn Source>,
}

/// Tensors that are cut by columns.
const BY_COLUMNS: [&str; 3] = ["tok_embeddings.", ".attention.wo.", ".feed_forward.w2."];

/// Most parts that a model ever had, twice over.
const MOST_PARTS: u64 = 16;

/// The tensors of the model whose first file is `first`, and how many files it has.
pub(super) fn tensors(first: &OldFile) -> Result<(Vec<JoinedTensor>, u64), Error> {
    let count = count(first)?;
    let others =
        (1..count).map(|number| open_part(first, number, count)).collect::<Result<Vec<_>, _>>()?;
    let whole = |(i, record): (usize, &Record)| whole(first, &others, i, record);
    let tensors = first.records.iter().enumerate().map(whole).collect::<Result<_, _>>()?;
    Ok((tensors, count))
}

/// The number of parts: the width of the model over the columns of a part's embedding.
fn count(first: &OldFile) -> Result<u64, Error> {
    let can_have_parts = first.layout.program == Program::Llama
        && matches!(first.container, Container::Ggml | Container::Ggmf);
    let embedding = first.records.iter().find(|record| record.name == "tok_embeddings.weight");
    let (true, Some(embedding)) = (can_have_parts, embedding) else { return Ok(1) };
    let width = u64::from(first.header.get(Field::Width).unwrap_or(0));
    let columns = embedding.dims[0];
    let count = width / columns;
    if !width.is_multiple_of(columns) || !(1..=MOST_PARTS).contains(&count) {
        let what = format!("the embedding has {columns} columns, the model a width of {width}");
        let help = "the file is damaged: get it again";
        return Err(Error::input("legacy-damaged", &first.path, what, help));
    }
    Ok(count)
}

/// The files that a model may be in whose first one is at `first`, whether they are there or not.
pub fn parts(first: &Path) -> impl Iterator<Item = PathBuf> {
    let others = (1..MOST_PARTS).map(move |number| path_of(first, number));
    std::iter::once(first.to_owned()).chain(others)
}

/// Where part `number` is.
fn path_of(first: &Path, number: u64) -> PathBuf {
    let mut path = first.as_os_str().to_owned();
    path.push(format!(".{number}"));
    path.into()
}

/// Opens another part, which must go with the first.
fn open_part(first: &OldFile, number: u64, count: u64) -> Result<OldFile, Error> {
    let path = path_of(&first.path, number);
    if !path.is_file() {
        let what = format!("is part 1 of {count}, and {} is not there", path.display());
        let help = "put all parts into one folder and name the one without number";
        return Err(Error::input("legacy-part-missing", &first.path, what, help));
    }
    let part = read(&path, Some(first.layout.names[0]))?;
    let alike = |a: &Record, b: &Record| {
        a.name == b.name && a.dims == b.dims && a.type_id == b.type_id && a.len == b.len
    };
    let same = part.container == first.container
        && part.header == first.header
        && part.vocabulary == first.vocabulary
        && part.records.len() == first.records.len()
        && part.records.iter().zip(&first.records).all(|(a, b)| alike(a, b));
    if !same {
        let what = format!("is no part of the same model as {}", first.path.display());
        let help = "put the part there that belongs to it";
        return Err(Error::input("legacy-part-foreign", &path, what, help));
    }
    Ok(part)
}

fn whole(
    first: &OldFile,
    others: &[OldFile],
    i: usize,
    record: &Record,
) -> Result<JoinedTensor, Error> {
    let Record { name, dims, form, .. } = record.clone();
    let own = first.bytes(record)?;
    if others.is_empty() || dims.len() < 2 {
        return Ok(JoinedTensor { name, dims, form, bytes: own });
    }
    let mut parts = vec![own];
    for other in others {
        parts.push(other.bytes(&other.records[i])?);
    }
    let by_columns = BY_COLUMNS.iter().any(|part| name.contains(part));
    let rows: u64 = dims.iter().skip(1).product();
    let turn = if by_columns { record.len / rows } else { record.len };
    let mut dims = dims;
    dims[usize::from(!by_columns)] *= parts.len() as u64;
    Ok(JoinedTensor { name, dims, form, bytes: Arc::new(RoundRobin { parts, turn }) })
}

/// Bytes that are dealt out in turns: `turn` of them to the first part, as many to the second, and
/// so on, then to the first again.
struct RoundRobin {
    parts: Vec<Arc<dyn Source>>,
    turn: u64,
}

impl Source for RoundRobin {
    fn byte_len(&self) -> u64 {
        self.parts.iter().map(|part| part.byte_len()).sum()
    }

    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        let count = self.parts.len() as u64;
        while !buffer.is_empty() {
            let (turn, within) = (offset / self.turn, offset % self.turn);
            let len = (self.turn - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            let part = &self.parts[(turn % count) as usize];
            part.read_at(run, turn / count * self.turn + within)?;
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
    fn turns_go_round() {
        let parts: Vec<Arc<dyn Source>> =
            vec![Arc::new(vec![0, 1, 4, 5, 8, 9]), Arc::new(vec![2, 3, 6, 7, 10, 11])];
        let turns = RoundRobin { parts, turn: 2 };
        for start in 0..12 {
            let mut out = vec![0; 12 - start];
            turns.read_at(&mut out, start as u64).unwrap();
            assert_eq!(out, (start as u8..12).collect::<Vec<_>>());
        }
    }
}
