//! Weights that another program has quantized, as that program itself would decode them.
//!
//! Of each such matrix a checkpoint has several tensors: packed numbers, scales, zero points. A
//! scheme knows them by the ends of their names and makes one tensor of them: of F32, computed by
//! the scheme's own formula, or of a GGUF type that holds exactly the same values.

mod awq;
mod awq_gemv;
mod bitsandbytes;
mod compressed;
mod config;
mod gptq;
mod hqq;
mod integers;
mod levels;
mod marlin;
mod method;
mod mlx;
mod modelopt;
mod mxfp4;
mod nvfp4;
mod packed;
mod scaled;
mod stream;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Kind;
use gguf::{Error, TensorType};
use gguf_store::Source;
use levels::Levels;

use super::dtype::Dtype;
use super::raw::Raw;
use super::rows::{Computed, Rows, TileCache};
use super::weight_file::WeightFile;

/// How the weights of a checkpoint are quantized.
pub(super) struct Scheme {
    /// The file that says so.
    path: PathBuf,
    kind: Kind,
}

/// A tensor as the rest of the program is to see it.
pub(super) enum Found {
    /// As it is stored.
    Plain(Raw),
    /// Put together from several.
    Made(Made),
}

/// A tensor that is computed.
pub(super) struct Made {
    pub name: String,
    /// Slowest dimension first.
    pub shape: Vec<u64>,
    pub tensor_type: TensorType,
    /// The file that holds its parts, for messages.
    pub file: usize,
    pub source: Arc<dyn Source>,
    /// Whether it is made of floats of eight bits.
    pub is_eight_bits: bool,
}

/// A quantized matrix that was recognised.
struct Matrix {
    name: String,
    shape: Vec<u64>,
    content: Content,
}

/// How it is computed.
enum Content {
    /// Rows of this type.
    Rows(TensorType, Box<dyn Rows>),
    /// Whole numbers under scales, for which a type is yet to be chosen.
    Levels(Arc<dyn Levels>),
}

/// Why a matrix cannot be read.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    /// Its parts do not go together: the end of a sentence about it.
    #[error("{0}")]
    Parts(String),
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
}

/// The tensors of a checkpoint by name, and which have become part of a matrix.
struct Set<'r> {
    by_name: HashMap<&'r str, &'r Raw>,
    used: RefCell<HashSet<&'r str>>,
}

impl<'r> Set<'r> {
    fn new(raws: &'r [Raw]) -> Self {
        let by_name = raws.iter().map(|raw| (raw.name.as_str(), raw)).collect();
        Self { by_name, used: RefCell::default() }
    }

    /// The tensor of this name, which becomes part of a matrix.
    fn take(&self, name: &str) -> Option<&'r Raw> {
        let raw = self.by_name.get(name).filter(|raw| raw.elements() > 0)?;
        self.used.borrow_mut().insert(&raw.name);
        Some(raw)
    }

    /// As [`Set::take`], for a tensor without which the matrix cannot be read.
    fn need(&self, name: &str) -> Result<&'r Raw, Wrong> {
        self.take(name).ok_or_else(|| Wrong::Parts(format!("has no `{name}` beside it")))
    }
}

impl Scheme {
    /// How the weights of the checkpoint in `dir` are quantized, if they are.
    ///
    /// # Errors
    /// If they are in a way that is not known.
    pub fn find(dir: &Path) -> Result<Option<Self>, Error> {
        Ok(config::find(dir)?.map(|(path, kind)| Self { path, kind }))
    }

    /// Puts quantized matrices together, and says what became of them.
    ///
    /// # Errors
    /// If the parts of a matrix do not go together.
    pub fn resolve(
        &self,
        raws: Vec<Raw>,
        files: &[WeightFile],
        cache: &Arc<TileCache>,
    ) -> Result<(Vec<Found>, Vec<String>), Error> {
        let set = Set::new(&raws);
        let mut matrices = Vec::new();
        // Of a tensor without elements, dimensions may be of any size: products of them overflow.
        for (place, raw) in raws.iter().enumerate().filter(|(_, raw)| raw.elements() > 0) {
            let matrix = (self.kind.read)(&set, raw).map_err(|wrong| match wrong {
                Wrong::Read(error) => error,
                Wrong::Parts(what) => {
                    let what = format!("tensor `{}` {what}", raw.name);
                    let help = format!(
                        "check that the weights are complete and quantized as `{}` says",
                        self.path.file_name().unwrap_or_default().to_string_lossy()
                    );
                    Error::input("quantization-tensors", &files[raw.file].path, what, help)
                }
            })?;
            matrices.extend(matrix.map(|matrix| (place, matrix)));
        }
        let used = set.used.take();
        let names: HashSet<String> = used.into_iter().map(str::to_owned).collect();
        let (mut made, notes) = self.made(matrices, &raws, cache)?;
        let mut found = Vec::new();
        for (place, raw) in raws.into_iter().enumerate() {
            // A tensor that is decoded under its own name stays where it is, as in llama.cpp's
            // converter; one of a new name comes after all others.
            match made.get(&place).is_some_and(|made| made.name == raw.name) {
                true => found.extend(made.remove(&place).map(Found::Made)),
                false if names.contains(&raw.name) || self.kind.ignores(&raw.name) => {}
                false => found.push(Found::Plain(raw)),
            }
        }
        found.extend(made.into_values().map(Found::Made));
        Ok((found, notes))
    }

    /// Chooses types and makes the sources, by the place of the matrix among the tensors.
    fn made(
        &self,
        matrices: Vec<(usize, Matrix)>,
        raws: &[Raw],
        cache: &Arc<TileCache>,
    ) -> Result<(BTreeMap<usize, Made>, Vec<String>), Error> {
        let types = levels::choose(matrices.iter().filter_map(|(_, matrix)| {
            let Content::Levels(levels) = &matrix.content else { return None };
            Some((matrix.name.as_str(), &**levels))
        }))?;
        let mut counts: BTreeMap<TensorType, usize> = BTreeMap::new();
        let mut made = BTreeMap::new();
        for (place, Matrix { name, shape, content }) in matrices {
            let (tensor_type, rows) = match content {
                Content::Rows(tensor_type, rows) => (tensor_type, rows),
                Content::Levels(levels) => {
                    let tensor_type = types.get(&name).copied().unwrap_or(TensorType::F32);
                    (tensor_type, levels::rows(levels, tensor_type))
                }
            };
            *counts.entry(tensor_type).or_default() += 1;
            let source = Computed::source(rows, cache);
            let Raw { file, dtype, .. } = raws[place];
            let is_eight_bits = matches!(dtype, Dtype::F8E4M3 | Dtype::F8E5M2);
            made.insert(place, Made { name, shape, tensor_type, file, source, is_eight_bits });
        }
        let scheme = self.kind.name;
        let note = |(tensor_type, count): (TensorType, usize)| match tensor_type {
            TensorType::F32 => {
                format!("{count} tensors are quantized ({scheme}); they are decoded")
            }
            other => format!(
                "{count} tensors are quantized ({scheme}); {other} holds exactly the same values"
            ),
        };
        Ok((made, counts.into_iter().map(note).collect()))
    }
}

/// Rows and columns of a matrix, all dimensions but the last together being its rows.
fn rows_and_columns(shape: &[u64]) -> Result<(u64, u64), Wrong> {
    match shape {
        [rows @ .., columns] if *columns > 0 => Ok((rows.iter().product(), *columns)),
        _ => Err(Wrong::Parts(format!("has the shape {shape:?}, which is no matrix"))),
    }
}

/// Writes floats as bytes.
fn put_floats(out: &mut [u8], values: impl Iterator<Item = f32>) {
    for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
        *out = f32::to_le_bytes(value);
    }
}
