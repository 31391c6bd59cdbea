//! Tensor-parallel shards, Meta's `consolidated.NN.pth`: each file holds a part of each matrix, for
//! one device.

use std::path::Path;
use std::sync::Arc;

use gguf::Error;

use super::raw::Raw;
use super::rows::{ComputedSource, Rows, TileCache};

/// Matrices split by columns, by the suffix of their names.
const SPLIT_BY_COLUMNS: [&str; 2] = ["attention.wo.weight", "feed_forward.w2.weight"];

/// Matrices split by rows.
const SPLIT_BY_ROWS: [&str; 6] = [
    "attention.wq.weight",
    "attention.wk.weight",
    "attention.wv.weight",
    "feed_forward.w1.weight",
    "feed_forward.w3.weight",
    "output.weight",
];

/// Embedding: split by rows in Llama 3, by columns in earlier models.
const EMBEDDING: &str = "tok_embeddings.weight";

/// Unsplit tensor that has the width of the model.
const UNSPLIT: &str = "norm.weight";

/// Dimension along which a matrix is split.
#[derive(Clone, Copy)]
enum SplitDim {
    Rows,
    Columns,
}

/// A matrix joined from parts.
struct JoinedMatrix {
    parts: Vec<Raw>,
    split: SplitDim,
}

/// Joins the tensors of all files, which are in order of the devices.
pub(super) fn join(dir: &Path, files: Vec<Vec<Raw>>) -> Result<Vec<Raw>, Error> {
    let cache = Arc::default();
    let mut files = files.into_iter();
    let first = files.next().unwrap_or_default();
    let others: Vec<Vec<Raw>> = files.collect();
    let width = first.iter().find(|raw| raw.name == UNSPLIT).map(Raw::elements);
    let fault = |name: &str, what: String| {
        let help = "use all `consolidated.NN.pth` files of one model, or its Hugging Face form";
        Error::input("checkpoint-parts", dir, format!("tensor `{name}` {what}"), help)
    };
    for raw in others.iter().flatten() {
        if !first.iter().any(|one| one.name == raw.name) {
            return Err(fault(&raw.name, "is not in the first file".to_owned()));
        }
    }
    let joined = |raw: Raw| {
        let name = raw.name.clone();
        let mut parts = vec![raw];
        for file in &others {
            let part = file.iter().find(|part| part.name == name);
            let part = part.ok_or_else(|| fault(&name, "is not in all files".to_owned()))?;
            if part.shape != parts[0].shape || part.dtype != parts[0].dtype {
                return Err(fault(&name, "differs in shape or type between the files".to_owned()));
            }
            parts.push(part.clone());
        }
        match (split_dim(&name, &parts[0].shape, width), &parts[0].shape[..]) {
            (Some(split), [_, _]) => Ok(join_matrix(parts, split, &cache)),
            (None, [_]) => Ok(parts.swap_remove(0)),
            (_, shape) => Err(fault(
                &name,
                format!("has the shape {shape:?}; the way it is split is unknown"),
            )),
        }
    };
    first.into_iter().map(joined).collect()
}

/// Returns the dimension along which a matrix is split; `width` is that of the model.
fn split_dim(name: &str, shape: &[u64], width: Option<u64>) -> Option<SplitDim> {
    let ends = |list: &[&str]| list.iter().any(|end| name.ends_with(end));
    match name {
        EMBEDDING if shape.last().copied() == width => Some(SplitDim::Rows),
        EMBEDDING => Some(SplitDim::Columns),
        _ if ends(&SPLIT_BY_COLUMNS) => Some(SplitDim::Columns),
        _ if ends(&SPLIT_BY_ROWS) => Some(SplitDim::Rows),
        _ => None,
    }
}

/// Returns the matrix joined from these parts of the same shape.
fn join_matrix(parts: Vec<Raw>, split: SplitDim, cache: &Arc<TileCache>) -> Raw {
    let first = parts[0].clone();
    let mut shape = first.shape.clone();
    match split {
        SplitDim::Rows => shape[0] *= parts.len() as u64,
        SplitDim::Columns => shape[1] *= parts.len() as u64,
    }
    let source = ComputedSource::source(Box::new(JoinedMatrix { parts, split }), cache);
    Raw { shape, source, offset: 0, ..first }
}

impl Rows for JoinedMatrix {
    fn count(&self) -> u64 {
        match self.split {
            SplitDim::Rows => self.parts[0].shape[0] * self.parts.len() as u64,
            SplitDim::Columns => self.parts[0].shape[0],
        }
    }

    fn row_bytes(&self) -> u64 {
        let part_bytes = self.parts[0].shape[1] * self.parts[0].dtype.bytes();
        match self.split {
            SplitDim::Rows => part_bytes,
            SplitDim::Columns => part_bytes * self.parts.len() as u64,
        }
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), Error> {
        let [rows, columns] = self.parts[0].shape[..] else { return Ok(()) };
        let row_bytes = self.row_bytes() as usize;
        for (row, out) in (first..).zip(out.chunks_exact_mut(row_bytes)) {
            match self.split {
                SplitDim::Rows => {
                    self.parts[(row / rows) as usize].read(row % rows * columns, out)?
                }
                SplitDim::Columns => {
                    let part_bytes = row_bytes / self.parts.len();
                    for (part, out) in self.parts.iter().zip(out.chunks_exact_mut(part_bytes)) {
                        part.read(row * columns, out)?;
                    }
                }
            }
        }
        Ok(())
    }
}
