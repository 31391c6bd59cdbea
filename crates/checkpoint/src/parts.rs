//! Meta's `consolidated.NN.pth`: every file has a part of each matrix, cut for one device.

use std::path::Path;
use std::sync::Arc;

use gguf::Error;

use super::raw::Raw;
use super::rows::{Computed, Rows, TileCache};

/// Matrices whose columns are cut, by the ends of their names.
const BY_COLUMNS: [&str; 2] = ["attention.wo.weight", "feed_forward.w2.weight"];

/// Matrices whose rows are cut.
const BY_ROWS: [&str; 6] = [
    "attention.wq.weight",
    "attention.wk.weight",
    "attention.wv.weight",
    "feed_forward.w1.weight",
    "feed_forward.w3.weight",
    "output.weight",
];

/// The one that is cut either way: Llama 3 cuts its rows, those before it its columns.
const EMBEDDING: &str = "tok_embeddings.weight";

/// Has as many elements as the model is wide, in every file.
const WHOLE: &str = "norm.weight";

/// Which way a matrix is cut.
#[derive(Clone, Copy)]
enum Cut {
    Rows,
    Columns,
}

/// A matrix whose parts are in several files.
struct Joined {
    parts: Vec<Raw>,
    cut: Cut,
}

/// Puts the tensors of all files together: `files` has those of each, in the order of the devices.
pub(super) fn join(dir: &Path, files: Vec<Vec<Raw>>) -> Result<Vec<Raw>, Error> {
    let cache = Arc::default();
    let mut files = files.into_iter();
    let first = files.next().unwrap_or_default();
    let others: Vec<Vec<Raw>> = files.collect();
    let width = first.iter().find(|raw| raw.name == WHOLE).map(Raw::elements);
    let fault = |name: &str, what: String| {
        let help = "take all `consolidated.NN.pth` of one model, or its Hugging Face form";
        Error::input("checkpoint-parts", dir, format!("tensor `{name}` {what}"), help)
    };
    for raw in others.iter().flatten() {
        if !first.iter().any(|one| one.name == raw.name) {
            return Err(fault(&raw.name, "is not in the first of the parts".to_owned()));
        }
    }
    let joined = |raw: Raw| {
        let name = raw.name.clone();
        let mut parts = vec![raw];
        for of_file in &others {
            let part = of_file.iter().find(|part| part.name == name);
            let part = part.ok_or_else(|| fault(&name, "is not in all parts".to_owned()))?;
            if part.shape != parts[0].shape || part.dtype != parts[0].dtype {
                return Err(fault(&name, "has not one shape and type in all parts".to_owned()));
            }
            parts.push(part.clone());
        }
        match (cut(&name, &parts[0].shape, width), &parts[0].shape[..]) {
            (Some(cut), [_, _]) => Ok(whole(parts, cut, &cache)),
            (None, [_]) => Ok(parts.swap_remove(0)),
            (_, shape) => Err(fault(
                &name,
                format!("has the shape {shape:?}, and nobody knows how it is cut"),
            )),
        }
    };
    first.into_iter().map(joined).collect()
}

/// Which way the matrix of this name is cut; `width` is that of the model.
fn cut(name: &str, shape: &[u64], width: Option<u64>) -> Option<Cut> {
    let ends = |list: &[&str]| list.iter().any(|end| name.ends_with(end));
    match name {
        EMBEDDING if shape.last().copied() == width => Some(Cut::Rows),
        EMBEDDING => Some(Cut::Columns),
        _ if ends(&BY_COLUMNS) => Some(Cut::Columns),
        _ if ends(&BY_ROWS) => Some(Cut::Rows),
        _ => None,
    }
}

/// The matrix that these are parts of, all of one shape.
fn whole(parts: Vec<Raw>, cut: Cut, cache: &Arc<TileCache>) -> Raw {
    let first = parts[0].clone();
    let mut shape = first.shape.clone();
    match cut {
        Cut::Rows => shape[0] *= parts.len() as u64,
        Cut::Columns => shape[1] *= parts.len() as u64,
    }
    let source = Computed::source(Box::new(Joined { parts, cut }), cache);
    Raw { shape, source, offset: 0, ..first }
}

impl Rows for Joined {
    fn count(&self) -> u64 {
        match self.cut {
            Cut::Rows => self.parts[0].shape[0] * self.parts.len() as u64,
            Cut::Columns => self.parts[0].shape[0],
        }
    }

    fn row_bytes(&self) -> u64 {
        let of_part = self.parts[0].shape[1] * self.parts[0].dtype.bytes();
        match self.cut {
            Cut::Rows => of_part,
            Cut::Columns => of_part * self.parts.len() as u64,
        }
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), Error> {
        let [rows, columns] = self.parts[0].shape[..] else { return Ok(()) };
        let row_bytes = self.row_bytes() as usize;
        for (row, out) in (first..).zip(out.chunks_exact_mut(row_bytes)) {
            match self.cut {
                Cut::Rows => self.parts[(row / rows) as usize].read(row % rows * columns, out)?,
                Cut::Columns => {
                    let of_part = row_bytes / self.parts.len();
                    for (part, out) in self.parts.iter().zip(out.chunks_exact_mut(of_part)) {
                        part.read(row * columns, out)?;
                    }
                }
            }
        }
        Ok(())
    }
}
